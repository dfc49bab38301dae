// The database of one directory: its connections, and what is done when it fails.
//
// A connection is used by one thread at a time and returned to a small pool. Three hard errors in a row, counted apart
// for reading and writing, switch that side off for good. A corrupt file is set aside and made anew once.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cache/connection.h"
#include "cache/place.h"
#include "cache/reporter.h"
#include "cache/stats.h"

namespace quartet::cache {

enum class Side : uint8_t { read, write };

class Store {
 public:
  struct Config {
    Os* os = nullptr;
    const char* vfs = nullptr;
    bool read_only = false;
    Reporter* report = nullptr;
    Counters* counters = nullptr;
  };
  // Opens the first connection, so that `usable(Side::read)` is known afterwards. The caller holds a SqliteUse.
  Store(const Config& config, Place place);

  // A connection on loan; empty when the side is off or opening failed. Give SQLite's answers to `note` before
  // returning it.
  class Loan {
   public:
    Loan() = default;
    Loan(Store* store, std::unique_ptr<Connection> connection) : store_(store), connection_(std::move(connection)) {}
    Loan(Loan&&) = default;
    Loan& operator=(Loan&&) = default;
    ~Loan() {
      if (connection_) store_->give_back(std::move(connection_));
    }
    explicit operator bool() const { return connection_ != nullptr; }
    Connection& operator*() { return *connection_; }

   private:
    Store* store_ = nullptr;
    std::unique_ptr<Connection> connection_;
  };
  Loan borrow(Side side);

  // Counts and reacts to a result of `connection`; true when `rc` is no trouble. Never leaves the connection's file in
  // use after it was set aside: the connection is then dropped when given back.
  bool note(Connection& connection, int rc, Side side);

  bool usable(Side side) const { return !off_[static_cast<size_t>(side)].load(std::memory_order_relaxed); }
  const std::string& file() const { return place_.file; }
  std::string reason();  // why reading is off; empty while it is on
  // Ends waits for locks of other processes from now on.
  void hurry() { stop_.store(true); }

  // Removes the file with everything beside it and starts an empty one. For a disk too full to delete rows from it;
  // processes that have the old file open go on with it. False when it could not be done.
  bool start_over();

  // Bounds the WAL: has it start over from the front when it has passed 64 MiB. False while that cannot be done and it
  // has passed 256 MiB: nothing should be written then. For the background thread.
  bool bound_wal(Connection& connection);
  // Empties the WAL into the file and closes every connection but loans. `used_for_writing`: whether there is reason
  // to.
  void close(bool used_for_writing);

 private:
  std::unique_ptr<Connection> open_connection(Side side);
  void give_back(std::unique_ptr<Connection> connection);
  void switch_off(Side side, const std::string& reason);
  bool repair(uint64_t device, uint64_t inode);
  bool begin_new_file();
  std::unique_ptr<FileLock> lock_gate(LockMode mode);

  Config config_;
  Place place_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> off_[2] = {false, false};
  std::atomic<uint32_t> failures_[2] = {0, 0};

  std::mutex mutex_;  // guards what follows
  std::vector<std::unique_ptr<Connection>> idle_;
  uint64_t device_ = 0, inode_ = 0;  // of the file that idle connections are to
  std::string reason_;

  std::mutex repair_mutex_;  // one repair at a time; taken before mutex_
  bool repaired_ = false;
};

}  // namespace quartet::cache
