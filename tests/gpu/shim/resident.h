// Launches whose blocks are there all at a time, on threads of the host (threads.h).
//
// A block runs as far as it gets, to where it meets the others, before the next one does: what is
// read before another block has written it, or written while another one still reads it, shows. A
// launch ends with an error where not all blocks get to a meeting, and where the counter of the
// meetings is not what they wait for.
#pragma once

namespace composite_threads {

constexpr size_t kPoolGuard = 1024;  // a multiple of it is where a pool begins

struct Pool {
  std::vector<char> bytes;
  char* start = nullptr;
};
inline Pool pool;  // of the block that runs

inline int64_t* counter = nullptr;  // of the meeting at which the block is
inline int64_t goal = 0;

// What a block holds in its shared memory at first is nobody's.
inline void GivePool() {
  pool.bytes.assign(pool_bytes + 2 * kPoolGuard, char(0xFF));
  pool.start = pool.bytes.data() + kPoolGuard - (uintptr_t)pool.bytes.data() % kPoolGuard;
}

inline void CheckPool() {
  for (const char* at = pool.start + pool_bytes; at < &*pool.bytes.end(); ++at)
    if (*at != char(0xFF)) return Fail("written behind the shared memory of a block");
}

// What a block has, while another one runs.
struct Suspended {
  std::vector<Fiber> fibers;
  std::unique_ptr<char[]> stacks;
  std::vector<Copies> copies;
  size_t under_way = 0;
  Pool pool;
  int64_t* counter = nullptr;
  int64_t goal = 0;

  void Swap() {
    std::swap(fibers, composite_threads::fibers);
    std::swap(stacks, composite_threads::stacks);
    std::swap(copies, composite_threads::copies);
    std::swap(under_way, composite_threads::under_way);
    std::swap(pool, composite_threads::pool);
    std::swap(counter, composite_threads::counter);
    std::swap(goal, composite_threads::goal);
  }
};
inline std::vector<Suspended> suspended;

inline void RunTogether(const Place& grid, size_t threads, bool reverse) {
  const unsigned count = Count(grid);
  if (suspended.size() < count) suspended.resize(count);
  const auto each = [&](auto&& what) {
    for (unsigned n = 0; n < count && error == nullptr; ++n) {
      const unsigned number = reverse ? count - 1 - n : n;
      block = PlaceOf(number, grid);
      suspended[number].Swap();
      what();
      suspended[number].Swap();
    }
  };
  each([&] {
    GivePool();
    StartBlock(threads);
  });
  for (unsigned done = 0; done == 0 && error == nullptr;) {
    each([&] { done += RunBlock(threads, reverse) == State::kDone; });
    if (done == count) break;
    if (done != 0) Fail("some blocks wait where others do not get");
    each([&] {
      if (*counter < goal) Fail("blocks wait for more than there are");
      if (*counter > goal) Fail("blocks do not wait for each other");
    });
  }
  each([&] { CheckPool(); });
}

}  // namespace composite_threads

inline void* composite_pool(int offset) { return composite_threads::pool.start + offset; }

inline void composite_meet(int64_t* counter, int64_t goal) {
  using namespace composite_threads;
  Meet();
  if (thread.x == 0) {
    ++*counter;
    composite_threads::counter = counter;
    composite_threads::goal = goal;
  }
  Wait(State::kAtMeeting);
}
