// What nodes keep from call to call is let go where they are no longer called.
#ifndef COMPOSITE_RUNTIME_MEMORY_IDLE_H_
#define COMPOSITE_RUNTIME_MEMORY_IDLE_H_

#include <atomic>
#include <cstdint>
#include <functional>

namespace composite {

// Notes a call of any node. Of every so many, one has what is idle let go.
void NoteCall();

// What somebody keeps for calls that come. It is idle after as many calls of other nodes as many
// times those that came between its last uses, and after a few hundred at least. Thread-safe.
class Idle {
 public:
  // `let_go` may be called by any thread until this is gone. It must not take a lock under which
  // somebody constructs or destroys an Idle, and uses none.
  explicit Idle(std::function<void()> let_go);
  ~Idle();
  Idle(const Idle&) = delete;
  Idle& operator=(const Idle&) = delete;

  // Notes a use, after which there may be something to let go.
  void Use();

 private:
  friend class IdleOnes;

  bool IsOver(int64_t now) const;

  const std::function<void()> let_go_;
  std::atomic<bool> keeps_{false};
  std::atomic<int64_t> last_{0};     // use, as a number of calls of any node
  std::atomic<int64_t> between_{0};  // uses: the most calls, of which older ones count for less
  // Guarded by the list of all.
  Idle* next_ = nullptr;
  Idle* previous_ = nullptr;
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_MEMORY_IDLE_H_
