"""x[r] moves to the solution of (diag(diagonal + ridge[r]) + sum_k w_k y_k y_k') x[r] = sum_k v_k y_k by `steps` steps.

Arguments  indptr int32|int64 [R+1] - row starts; indices same type [z]; data float32|float64 [z]; y same [D, N], y_k =
           y[indices[k]]; diagonal same [N]; ridge same [R]; numbers weight_scale, weight_shift, target_scale,
           target_shift: w_k = weight_scale*data[k] + weight_shift, v_k = target_scale*data[k] + target_shift; steps int
Writes     x [R, N], from which the steps start; rows without entries become 0; nothing else changes
Assumes    0 <= indices < D; duplicates count each; columns may be unsorted; diagonal + ridge > 0 and w_k >= 0
Cost       4*z*N*(steps+1) + 10*R*N*(steps+1) flops; reads z*(index+value) + U*N*value, reads and writes R*N*value bytes
Parallel   over rows, in parts of equal cost; a row's sums have one order: same bits always
Limits     N <= 2048 on the CPU; z < 2**63, D*N < 2**63
Source     Takacs, Pilaszy, Tikk 2011, conjugate gradients for ALS; differs: the Gram matrix of y is diagonal (its
           eigenvectors are the axes), so a step needs no product by it, and it is the preconditioner
"""

import functools

import numpy as np

from kernels import devices
from kernels.contract import Case, Cost, KernelError, Sizes, register_kernel
from kernels.formula import choose
from kernels.gpu.indices import is_wide
from kernels.gpu.source import FLOATS, c_name, grid, source
from kernels.vector.gather import RowLoop, work_of
from kernels.vector.tiles import Cut, Tile, full_lanes, tile_for

MOST_COLUMNS = 2048
"""Columns of a row up to which its vectors lie on the stack of a CPU."""

AT_ONCE = 8
"""Entries whose products are summed side by side: as many sums are in flight, and p and q are loaded once for all."""

VECTORS = 4
"""Vectors of a tile."""


def reference(
    indptr, indices, data, y, diagonal, ridge, weight_scale, weight_shift, target_scale, target_shift, steps, x
):
    """Improve each row of x [R, N] by `steps` steps of preconditioned conjugate gradients, in plain loops.

    The matrix of row r is diag(diagonal [N] + ridge [R]) + sum of w y y', its right side the sum of v y, over the rows
    of y [D, N] that the entries of row r in indptr [R+1], indices [z] name; w and v are linear in data [z].
    """
    for r in range(x.shape[0]):
        if indptr[r] == indptr[r + 1]:
            x[r] = 0
        dots, p, rz = diagonal + ridge[r], x[r].copy(), x.dtype.type(0)
        residual = np.zeros_like(p)
        for step in range(steps + 1):
            q = -dots * p if step == 0 else dots * p
            for k in range(indptr[r], indptr[r + 1]):
                row = y[indices[k]]
                dot = (row * p).sum()
                weight = weight_scale * data[k] + weight_shift
                q += ((target_scale * data[k] + target_shift) - weight * dot if step == 0 else weight * dot) * row
            if step == 0:
                residual, rz = q, (q * q / dots).sum()
                p = residual / dots
                continue
            pq = (p * q).sum()
            length = rz / pq if pq > 0 else x.dtype.type(0)
            x[r] += length * p
            residual = residual - length * q
            rz, before = (residual * residual / dots).sum(), rz
            p = residual / dots + (rz / before if before > 0 else x.dtype.type(0)) * p


def _row(
    lane, u, indptr, indices, data, y, diagonal, ridge, weight_scale, weight_shift, target_scale, target_shift, steps, x
):
    """Emit vector code for row u: x[u] takes `steps` steps of preconditioned conjugate gradients, see `reference`.

    Step 0 is the residual, computed by the same code: q = -dots * x + sum of (v - w * dot) y.
    """
    builder, nought = lane.builder, lane.integer(0)
    inverse, p, q, residual = (lane.scratch(MOST_COLUMNS) for _ in range(4))
    start, stop, extra = indptr.index(u), indptr.index(u + 1), ridge.number(u)
    is_filled = builder.icmp_signed("<", start.value, stop.value)

    def begin(j, _):
        """Emit inverse = 1 / dots and p = x for one tile; x = 0 if the row has no entries."""
        dots = [each + extra for each in diagonal.row(nought, j).load()]
        inverse.row(j).store([1.0 / each for each in dots])
        kept = [lane.float(builder.select(is_filled, each.value, lane.zeros())) for each in x.row(u, j).load()]
        x.row(u, j).store(kept)
        p.row(j).store(kept)

    lane.blocks(begin)

    def step(number, carried):
        """Emit step `number`; carried is [rz], the square of the residual in the norm of the preconditioner."""
        is_first = builder.icmp_signed("==", number.value, nought.value)
        sign = lane.float(builder.select(is_first, lane.number(-1).value, lane.number(1).value))

        def by_diagonal(j, _):
            """Emit q = sign * dots * p for one tile."""
            pairs = zip(diagonal.row(nought, j).load(), p.row(j).load(), strict=True)
            q.row(j).store([(each + extra) * of_p * sign for each, of_p in pairs])

        lane.blocks(by_diagonal)

        def entries(count, k, _):
            """Emit q += scale * y for entries k to k + count - 1."""
            columns = [indices.index(k + place) for place in range(count)]

            def dot(j, sums):
                """Return the vectors of sums of y * p, one for each entry, after one tile."""
                of_p = p.row(j).load()
                added = []
                for column, total in zip(columns, sums, strict=True):
                    for one, other in zip(y.row(column, j).load(), of_p, strict=True):
                        total = one.times_plus(other, total)
                    added.append(total)
                return added

            lane.use(lane.cut.rest)
            dots = lane.totals(lane.blocks(dot, [lane.float(lane.zeros())] * count))
            lane.use(Tile(lane.bits, count, 1, masked=False))
            of_data = data.row(nought, k).load()[0]
            weights, targets = of_data * weight_scale + weight_shift, of_data * target_scale + target_shift
            first = lane.float(builder.select(is_first, targets.value, lane.zeros()))
            scales = first + weights * dots * sign

            def add(j, _):
                """Emit the sum into q for one tile."""
                total = q.row(j).load()
                for place, column in enumerate(columns):
                    scale = lane.one_of(scales, place)
                    total = [
                        scale.times_plus(one, old) for one, old in zip(y.row(column, j).load(), total, strict=True)
                    ]
                q.row(j).store(total)

            lane.blocks(add)

        at, count = start, AT_ONCE
        while count:
            end = at + (stop - at).rounded_down(count)
            lane.loop(at, end, count, [], functools.partial(entries, count))
            at, count = end, count // 2

        def direction(j, sums):
            """Emit p and residual of the first step for one tile; return [rz], a vector."""
            of_q = q.row(j).load()
            residual.row(j).store(of_q)
            new = [one * other for one, other in zip(of_q, inverse.row(j).load(), strict=True)]
            p.row(j).store(new)
            return [_added(of_q, new, sums[0])]

        def product(j, sums):
            """Return [p . q], a vector, after one tile."""
            return [_added(p.row(j).load(), q.row(j).load(), sums[0])]

        def first(_, carried):
            """Emit the first step; return [rz]."""
            return [lane.totals(lane.blocks(direction, [lane.float(lane.zeros())]))]

        def later(_, carried):
            """Emit a later step, of length rz / (p . q); return the new [rz]."""
            zero = lane.number(0)
            pq = lane.totals(lane.blocks(product, [lane.float(lane.zeros())]))
            length = choose(pq > zero, carried[0] / pq, zero)

            def move(j, sums):
                """Emit x and residual after the step for one tile; return [rz], a vector."""
                of_x = [b + length * a for a, b in zip(p.row(j).load(), x.row(u, j).load(), strict=True)]
                x.row(u, j).store(of_x)
                rest = [b - length * a for a, b in zip(q.row(j).load(), residual.row(j).load(), strict=True)]
                residual.row(j).store(rest)
                scaled = [one * other for one, other in zip(rest, inverse.row(j).load(), strict=True)]
                return [_added(rest, scaled, sums[0])]

            rz = lane.totals(lane.blocks(move, [lane.float(lane.zeros())]))
            ratio = choose(carried[0] > zero, rz / carried[0], zero)

            def turn(j, _):
                """Emit p = residual * inverse + ratio * p for one tile."""
                parts = zip(residual.row(j).load(), inverse.row(j).load(), p.row(j).load(), strict=True)
                p.row(j).store([a * b + ratio * old for a, b, old in parts])

            lane.blocks(turn)
            return [rz]

        once = type(nought)(lane, builder.zext(is_first, nought.value.type))
        carried = lane.loop(nought, once, 1, carried, first)
        return lane.loop(once, lane.integer(1), 1, carried, later)

    lane.use(lane.cut.rest)
    lane.loop(nought, steps + 1, 1, [lane.number(0)], step)


def _added(ones, others, total):
    """Emit total + ones . others, lane by lane; return the vector."""
    for one, other in zip(ones, others, strict=True):
        total = one.times_plus(other, total)
    return total


def cut_passes(width, itemsize):
    """Return the cut of `width` columns into tiles of `VECTORS` vectors, all of the same lanes, since sums go on.

    Rows of y are not prefetched: on one core of a Xeon that changed less than a twentieth, from memory too.
    """
    bits, lanes = 8 * itemsize, full_lanes(8 * itemsize)
    most = VECTORS * lanes
    if width <= most:
        return Cut(None, tile_for(width, bits))
    rest = (width - 1) % most + 1
    return Cut(Tile(bits, lanes, VECTORS, masked=False), Tile(bits, lanes, -(-rest // lanes), masked=rest % lanes != 0))


_rows = RowLoop(_row, cut=cut_passes, starts=0)


def cpu(indptr, indices, data, y, diagonal, ridge, weight_scale, weight_shift, target_scale, target_shift, steps, x):
    """Improve each row of x [R, N] by `steps` steps of preconditioned conjugate gradients, on the CPU.

    The matrix of row r is diag(diagonal [N] + ridge [R]) + sum of w y y', its right side the sum of v y, over the rows
    of y [D, N] that the entries of row r in indptr [R+1], indices [z] name; w and v are linear in data [z].
    """
    rows, width = x.shape
    if width > MOST_COLUMNS:
        raise KernelError(f"als_conjugate: x has {width} columns; expected at most {MOST_COLUMNS}.")
    numbers = (float(each) for each in (weight_scale, weight_shift, target_scale, target_shift))
    shape, work = (width, x.itemsize), work_of(indices.size, width, rows) * 2 * (steps + 1)
    _rows.run(shape, rows, work, indptr, indices, data, y, diagonal, ridge, *numbers, int(steps), x)


_KEPT = 1, 2, 8, 0
"""Columns of each vector that a lane of a CUDA device keeps in registers; 0 is for rows of any width."""

_MOST_FAR = 512
"""Blocks of a launch whose vectors lie in global memory, 16 of N values for each."""

_CUDA = source(__file__, [f"als_conjugate<{value}, {kept}>" for value in FLOATS for kept in _KEPT])


def gpu(indptr, indices, data, y, diagonal, ridge, weight_scale, weight_shift, target_scale, target_shift, steps, x):
    """Improve each row of x [R, N] by `steps` steps of preconditioned conjugate gradients, on a CUDA device.

    The matrix of row r is diag(diagonal [N] + ridge [R]) + sum of w y y', its right side the sum of v y, over the rows
    of y [D, N] that the entries of row r in indptr [R+1], indices [z] name; w and v are linear in data [z].
    """
    if not x.size:
        return
    device, (rows, width), value = devices.device_of(x), x.shape, x.dtype.type
    kept = next((each for each in _KEPT if 32 * each >= width), 0)
    count = grid(rows if kept else min(rows, _MOST_FAR))
    scratch = device.empty(0 if kept else (count, 16, width), x.dtype)
    numbers = (value(each) for each in (weight_scale, weight_shift, target_scale, target_shift))
    operands = indptr, indices, is_wide(indices), data, y, diagonal, ridge, *numbers, int(steps), x, rows, width
    device.launch(_CUDA, f"als_conjugate<{c_name(x.dtype)}, {kept}>", count, *operands, scratch)


def cost(s: Sizes) -> Cost:
    """Return flops and bytes of a call of three steps with sizes `s`: each distinct row of y moves once."""
    fixed = s.z * (s.index + s.value) + (s.R + 1) * s.index + 2 * s.R * s.N * s.value
    return Cost(16 * s.z * s.N + 40 * s.R * s.N, fixed + s.U * s.N * s.value, 4 * s.z * s.N * s.value)


def arguments(case: Case) -> tuple:
    """Build operands from `case`: the pattern of A with weights and targets, the factors of both sides."""
    y = case.dense(case.D, case.N) / np.asarray(max(case.N, 1) ** 0.5, case.dtype)
    diagonal, ridge = 1 + np.abs(case.dense(case.N, salt=1)), 1 + np.abs(case.dense(case.R, salt=2))
    x = case.dense(case.R, case.N, salt=3)
    return case.indptr, case.indices, np.abs(case.data), y, diagonal, ridge, 0.5, 0.25, 1.5, 0.75, 3, x


register_kernel(
    __name__,
    "als_conjugate",
    "indptr:i[R+1]^z indices:i[z]<D data:f[z] y:f[D,N] diagonal:f[N] ridge:f[R] weight_scale:s weight_shift:s "
    "target_scale:s target_shift:s steps:s x:f[R,N]",
    writes=("x",),
)
