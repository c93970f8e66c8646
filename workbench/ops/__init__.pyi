"""Operators on arrays and symbols. Written by `python -m tests.support.operator_stub`."""

from workbench.ops.contract import ANY as ANY
from workbench.ops.contract import REQUIRED as REQUIRED
from workbench.ops.contract import Op as Op
from workbench.ops.contract import OpError as OpError
from workbench.ops.contract import OpMemoryError as OpMemoryError
from workbench.ops.contract import Rule as Rule
from workbench.ops.contract import Symbolic as Symbolic
from workbench.ops.contract import broadcast_shape as broadcast_shape
from workbench.ops.contract import get as get
from workbench.ops.contract import names as names
from workbench.ops.contract import register as register
from workbench.ops.contract import same_shape as same_shape
from workbench.ops.contract import unavailable as unavailable
from workbench.ops.fallback import Densified as Densified
from workbench.ops.fallback import DensifyError as DensifyError
from workbench.ops.fallback import DensifyWarning as DensifyWarning
from workbench.ops.fallback import recording as recording
from workbench.ops.fallback import settings as settings

abs: Op
"""|x|"""
add: Op
"""x + y"""
add_n: Op
"""The sum of any number of arrays of one shape."""
add_scalar: Op
"""x + scalar"""
arccos: Op
"""arccos(x)"""
arccosh: Op
"""arccosh(x), of x from one on"""
arcsin: Op
"""arcsin(x)"""
arcsinh: Op
"""arcsinh(x)"""
arctan: Op
"""arctan(x)"""
arctanh: Op
"""arctanh(x)"""
at_places_of: Op
"""x at the places that a csr, csc or coo `like` stores, each once, in its format, and nothing elsew..."""
cast: Op
"""x with values of type `dtype`, cast as NumPy casts; the pattern stays."""
cast_like: Op
"""x with values of the type of `like`, in its own format."""
cbrt: Op
"""the cube root"""
ceil: Op
"""the next whole number above"""
clip: Op
"""x, at least `low` and at most `high`. A sparse x keeps its format where zero lies between them."""
concat: Op
"""The arrays one after the other along `axis`. Those of one sparse format keep it."""
copy: Op
"""A copy of the array."""
cos: Op
"""cos(x)"""
cosh: Op
"""cosh(x)"""
count_stored: Op
"""How many elements are stored, zeros among them included: int64. A dense array stores all of them."""
degrees: Op
"""radians to degrees"""
dense_unless_alike: Op
"""x, dense unless `like` has its sparse format: head times factor, on the way to the other factor o..."""
divide: Op
"""x / y; a sparse x over a dense y that is broadcast is divided where it is stored; elsewhere 0 / 0..."""
divide_into_scalar: Op
"""scalar / x"""
divide_scalar: Op
"""x / scalar; acts on stored values, so that an element that is not stored stays zero also for 0 an..."""
dot: Op
"""The product of matrix x [R, D] and y [D, N] or vector y [D], either transposed where its paramete..."""
embedding: Op
"""The rows of the weight that the ids, whole numbers in any shape, name. A row_sparse weight may la..."""
embedding_gradient: Op
"""The gradient of `embedding` towards a weight of the shape of `like`: contributions of the same id..."""
equal: Op
"""1 where x == y, else 0; in the type of the inputs"""
equal_scalar: Op
"""1 where x == scalar, else 0; in the type of x"""
erf: Op
"""the error function"""
exp: Op
"""exp(x)"""
expm1: Op
"""exp(x) - 1"""
field_sums: Op
"""For each row of x [R, D] and each of F fields, which are so many columns each, the sum of x_i v_i..."""
field_sums_gradient: Op
"""The gradient of `field_sums` towards v, by the head [R, F K], of which each field reads its part:..."""
fix: Op
"""the whole part, towards zero"""
floor: Op
"""the next whole number below"""
fully_connected: Op
"""x @ weight.T, plus the bias where one is given: x [R, D], weight [N, D], bias [N], in any formats..."""
greater: Op
"""1 where x > y, else 0; in the type of the inputs"""
greater_equal: Op
"""1 where x >= y, else 0; in the type of the inputs"""
greater_equal_scalar: Op
"""1 where x >= scalar, else 0; in the type of x"""
greater_scalar: Op
"""1 where x > scalar, else 0; in the type of x"""
hypot: Op
"""sqrt(x**2 + y**2)"""
hypot_scalar: Op
"""sqrt(x**2 + scalar**2)"""
identity: Op
"""x, a copy"""
interactions: Op
"""For each row of x [R, D] the sum over all pairs of its features i < j of x_i x_j <v_i, v_j>, with..."""
interactions_gradient: Op
"""The gradient of `interactions` towards v, by the head [R, 1]: x.T @ (head * (x @ v)) - (x^2).T @ ..."""
is_within: Op
"""1 where x lies from `low` to `high`, else 0; dense."""
keep_axes: Op
"""The gradient of a reduction over `axis` with length one along the axes that `like` was reduced ov..."""
less: Op
"""1 where x < y, else 0; in the type of the inputs"""
less_equal: Op
"""1 where x <= y, else 0; in the type of the inputs"""
less_equal_scalar: Op
"""1 where x <= scalar, else 0; in the type of x"""
less_scalar: Op
"""1 where x < scalar, else 0; in the type of x"""
linear_regression_output: Op
"""x itself; its gradient is x - label, times `grad_scale`, divided by the outputs of a row; the gra..."""
log: Op
"""the natural logarithm"""
log10: Op
"""the logarithm to base 10"""
log1p: Op
"""log(1 + x)"""
log2: Op
"""the logarithm to base 2"""
log_softmax: Op
"""the logarithm of softmax along `axis`"""
logical_and: Op
"""1 where both are other than zero, else 0; in the type of the inputs"""
logical_and_scalar: Op
"""1 where x and scalar are both other than zero, else 0; in the type of x"""
logical_or: Op
"""1 where one is other than zero, else 0; in the type of the inputs"""
logical_or_scalar: Op
"""1 where x or scalar is other than zero, else 0; in the type of x"""
logical_xor: Op
"""1 where one of the two is other than zero, else 0; in the type of the inputs"""
logical_xor_scalar: Op
"""1 where one of x and scalar is other than zero, else 0; in the type of x"""
logistic_loss: Op
"""Cross-entropy of sigmoid(scores) and labels from 0 to 1, summed over the outputs, as a mean over ..."""
logistic_regression_output: Op
"""sigmoid(x); the gradient of x is that - label, times `grad_scale`, divided by the outputs of a ro..."""
mae_regression_output: Op
"""x itself; its gradient is the sign of x - label, times `grad_scale`, divided by the outputs of a ..."""
make_loss: Op
"""x as a loss: its gradient is one"""
max: Op
"""The largest element; equal ones share its gradient."""
maximum: Op
"""the larger one, NaN where one is"""
maximum_scalar: Op
"""the larger of x and scalar"""
mean: Op
"""The mean along the axes."""
min: Op
"""The smallest element; equal ones share its gradient."""
minimum: Op
"""the smaller one, NaN where one is"""
minimum_scalar: Op
"""the smaller of x and scalar"""
mod: Op
"""x mod y, with the sign of y"""
mod_scalar: Op
"""x mod scalar, with the sign of the scalar"""
multiply: Op
"""x * y; an element that a sparse input does not store stays zero, also where the other is inf or NaN"""
multiply_scalar: Op
"""x * scalar; acts on stored values, so that an element that is not stored stays zero also for inf ..."""
negative: Op
"""-x"""
norm: Op
"""The norm along the axes: the root of the sum of squares, or with `ord` 1 the sum of absolute values."""
not_equal: Op
"""1 where x != y, else 0; in the type of the inputs"""
not_equal_scalar: Op
"""1 where x != scalar, else 0; in the type of x"""
ones_like: Op
"""ones, in the shape and type of x"""
over_rows: Op
"""x divided by the number of its rows: what a mean over the rows leaves of a gradient."""
part_of_concat: Op
"""The part of a gradient that belongs to the array number `place` of those put together; dense."""
places_wanted: Op
"""A pattern for the gradient towards `output`: its own, unless the places of its sparse input `held..."""
power: Op
"""x ** y"""
power_scalar: Op
"""x ** scalar"""
prod: Op
"""The product of the elements along the axes. Whole numbers are computed in int64."""
product_of_others: Op
"""For every element the product of the others along the axes: what the gradient of prod is made of."""
radians: Op
"""degrees to radians"""
random_normal: Op
"""Numbers drawn from the normal distribution."""
random_uniform: Op
"""Numbers drawn evenly from [low, high)."""
reciprocal: Op
"""1 / x, inf where x is 0"""
relu: Op
"""max(x, 0)"""
reshape: Op
"""x in another shape of as many elements, row after row; one length may be -1. csr, csc and coo kee..."""
reshape_like: Op
"""x in the shape of `like`, dense."""
retain: Op
"""The rows asked for of a row_sparse x, and no others: as stored there, or zeros. Where x stores no..."""
rint: Op
"""the nearest whole number, halves down: -2.5 gives -3, 2.5 gives 2"""
round: Op
"""the nearest whole number, halves away from zero: 2.5 gives 3"""
rows_of: Op
"""The rows asked for of an array, as row_sparse: the gradient of `retain`, of which dense heads com..."""
rsqrt: Op
"""1 / sqrt(x)"""
sampled_dot: Op
"""The product of a [R, N] and b [N, D], either transposed where its parameter says so, at the entri..."""
scalar_mod: Op
"""scalar mod x, with the sign of x"""
scalar_power: Op
"""scalar ** x"""
sigmoid: Op
"""1 / (1 + exp(-x))"""
sign: Op
"""-1, 0 or 1"""
sin: Op
"""sin(x)"""
sinh: Op
"""sinh(x)"""
slice: Op
"""From `begin` to `end`, in steps of `step`: lists with a number or None for each of the first axes..."""
slice_gradient: Op
"""The gradient of `slice` towards an array of the shape of `like`: zeros around the head; dense."""
slope_of_loss: Op
"""The gradient of the loss named `loss` towards the scores."""
slope_of_others: Op
"""The gradient of `product_of_others`: for every element the sum, over each other element of its gr..."""
slope_of_output: Op
"""The gradient of an output layer: the difference, or its sign, as `kind` says."""
slope_of_softmax: Op
"""The gradient of softmax_output, from its output."""
slope_of_square_sum: Op
"""The gradient of `square_sum`, 2 head x, where the head or x stores something: in the rows of a ro..."""
softmax: Op
"""exp(x), scaled to a sum of one along `axis`"""
softmax_loss: Op
"""Cross-entropy of softmax(scores) and classes, as a mean over the rows. A class out of range is re..."""
softmax_output: Op
"""softmax over the last axis; the gradient of x is that less one at the label, times `grad_scale`, ..."""
softsign: Op
"""x / (1 + |x|)"""
spread: Op
"""The gradient of a sum over `axis`, or with `mean` of a mean: every element of `like` gets its sum..."""
spread_at: Op
"""`spread` over the shape of `whole`, at the places that `like` stores and nowhere else: every elem..."""
spread_times: Op
"""`spread` times a factor, of the shape of `like` or a shape that is broadcast to it. An element th..."""
sqrt: Op
"""the square root"""
square: Op
"""x * x"""
square_sum: Op
"""The sum of squares along the axes. Whole numbers are computed in int64."""
squared_loss: Op
"""Half the squared error, summed over the outputs, as a mean over the rows."""
stop_gradient: Op
"""x, through which no gradient flows"""
stored_add_scalar: Op
"""x + scalar at the stored values; what is not stored stays zero. All of a dense array is stored."""
stored_divide: Op
"""x / y where x is stored; what x does not store stays zero, also where y is zero. All of a dense x..."""
stored_subtract_scalar: Op
"""x - scalar at the stored values; what is not stored stays zero. All of a dense array is stored."""
subtract: Op
"""x - y"""
subtract_from_scalar: Op
"""scalar - x"""
subtract_scalar: Op
"""x - scalar"""
sum: Op
"""The sum along the axes. Whole numbers are computed in int64."""
sum_to_shape_of: Op
"""x summed over the axes along which `like` would be broadcast to it; x itself, not a copy, where t..."""
take: Op
"""The rows, or along `axis` the columns and so on, of these numbers. Those out of range are refused..."""
take_gradient: Op
"""The gradient of `take` towards an array of the shape of `like`: for rows row_sparse, those taken."""
tan: Op
"""tan(x)"""
tanh: Op
"""tanh(x)"""
to_format: Op
"""x in the format named `format`: how a graph converts where it is meant, without a warning. The gr..."""
transpose: Op
"""x with its axes in the order `axes`, turned round where not given. csr becomes csc and csc csr, f..."""
trunc: Op
"""the whole part, towards zero"""
where: Op
"""x where the condition is not zero, else y. A sparse condition is read where it is stored."""
zeros: Op
"""Zeros; sparse formats store nothing."""
zeros_like: Op
"""Zeros, in shape, type and format of x; sparse formats store nothing."""
