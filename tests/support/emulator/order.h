// The order in which threads and blocks run: ascending, or drawn.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace emulator {

uint64_t random_state;
bool is_unfair;

inline unsigned draw(unsigned below) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (unsigned)(random_state % below);
}

inline void permute(std::vector<unsigned>& order) {
    if (random_state)
        for (unsigned k = (unsigned)order.size(); k > 1; k--) std::swap(order[k - 1], order[draw(k)]);
}

// Threads take turns in an order that is drawn anew for every round; or, where the draw is unfair, the first in it runs
// whenever it can, warp by warp, so that some are as far ahead of the others as barriers allow.
inline void order_warps(std::vector<unsigned>& order, unsigned lanes) {
    std::vector<unsigned> warps((order.size() + lanes - 1) / lanes);
    for (unsigned w = 0; w < warps.size(); w++) warps[w] = w;
    permute(warps);
    permute(order);
    const auto is_first = [&](unsigned a, unsigned b) { return warps[a / lanes] < warps[b / lanes]; };
    std::stable_sort(order.begin(), order.end(), is_first);
}

}  // namespace emulator
