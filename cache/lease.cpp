#include "cache/lease.h"

#include "cache/records.h"

namespace quartet::cache {
namespace {

int64_t now_ms(Os& os) { return os.monotonic_ns() / 1000000; }

bool alive(Os& os, const LeaseOwner& self, const LeaseOwner& owner, int64_t expires_ms) {
  // An expiry beyond what any owner writes is damage, or another machine's clock.
  const int64_t now = now_ms(os);
  if (owner.boot != self.boot || now > expires_ms || expires_ms > now + 2 * kLeaseLifeMs) return false;
  if (owner.pid_space != self.pid_space) return true;  // its pid says nothing here; only its silence will
  const auto info = os.process_info(owner.pid);
  if (info.status().code() == Code::not_found) return false;
  return !info || (!info->zombie && info->start_time == owner.pid_start);
}

}  // namespace

Result<LeaseOwner> this_owner(Os& os) {
  LeaseOwner owner;
  owner.pid_space = os.pid_space();
  QUARTET_ASSIGN(owner.boot, os.boot_id());
  owner.pid = os.process_id();
  QUARTET_ASSIGN(const ProcessInfo info, os.process_info(owner.pid));
  owner.pid_start = info.start_time;
  return owner;
}

int lease_state(Connection& connection, Os& os, const LeaseOwner& self, const Digest& index, Kind kind,
                LeaseState& state) {
  Query find(connection, Sql::lease_find);
  const int rc = find.bind(index).bind(static_cast<int64_t>(kind)).step();
  state = LeaseState::free;
  if (rc == SQLITE_DONE) return SQLITE_OK;
  if (rc != SQLITE_ROW) return rc;
  LeaseOwner owner;
  owner.pid_space = find.text(0);
  owner.boot = find.text(1);
  owner.pid = find.number(2);
  owner.pid_start = find.unsigned_number(3);
  if (owner.boot == self.boot && owner.pid == self.pid && owner.pid_start == self.pid_start &&
      owner.pid_space == self.pid_space)
    state = LeaseState::mine;
  else if (alive(os, self, owner, find.number(4)))
    state = LeaseState::other;
  return SQLITE_OK;
}

int take_lease(Connection& connection, Os& os, const LeaseOwner& self, const Digest& index, Kind kind,
               LeaseState& state) {
  Transaction transaction(connection);
  if (transaction.begun() != SQLITE_OK) return transaction.begun();
  bool exists = false;
  int rc = entry_exists(connection, index, kind, exists);
  if (rc == SQLITE_OK && exists) {
    state = LeaseState::other;
    return SQLITE_OK;
  }
  if (rc == SQLITE_OK) rc = lease_state(connection, os, self, index, kind, state);
  if (rc != SQLITE_OK || state == LeaseState::other) return rc;
  rc = Query(connection, Sql::lease_take)
           .bind(index)
           .bind(static_cast<int64_t>(kind))
           .bind_text(self.pid_space)
           .bind_text(self.boot)
           .bind(self.pid)
           .bind(self.pid_start)
           .bind(now_ms(os) + kLeaseLifeMs)
           .run();
  if (rc == SQLITE_OK) rc = transaction.commit();
  if (rc == SQLITE_OK) state = LeaseState::mine;
  return rc;
}

int renew_lease(Connection& connection, Os& os, const LeaseOwner& self, const Digest& index, Kind kind) {
  Transaction transaction(connection);
  if (transaction.begun() != SQLITE_OK) return transaction.begun();
  const int rc = Query(connection, Sql::lease_beat)
                     .bind(index)
                     .bind(static_cast<int64_t>(kind))
                     .bind_text(self.boot)
                     .bind(self.pid)
                     .bind(self.pid_start)
                     .bind(now_ms(os) + kLeaseLifeMs)
                     .run();
  return rc == SQLITE_OK ? transaction.commit() : rc;
}

int drop_lease(Connection& connection, const LeaseOwner& self, const Digest& index, Kind kind) {
  Transaction transaction(connection);
  if (transaction.begun() != SQLITE_OK) return transaction.begun();
  const int rc = Query(connection, Sql::lease_drop)
                     .bind(index)
                     .bind(static_cast<int64_t>(kind))
                     .bind_text(self.boot)
                     .bind(self.pid)
                     .bind(self.pid_start)
                     .run();
  return rc == SQLITE_OK ? transaction.commit() : rc;
}

}  // namespace quartet::cache
