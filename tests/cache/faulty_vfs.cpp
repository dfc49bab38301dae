#include "tests/cache/faulty_vfs.h"

#include <cstring>

namespace quartet::cache::test {
namespace {

VfsFaults* faults = nullptr;
sqlite3_vfs* real_vfs = nullptr;

bool fails(bool writing, bool reading = false) {
  if ((faults->writes_only && !writing) || (faults->reads_only && !reading)) return false;
  const int64_t call = ++faults->calls, wanted = faults->fail_at;
  return wanted > 0 && (call == wanted || (faults->forever && call > wanted));
}

struct File {
  sqlite3_file base;
  sqlite3_file* real;
};
sqlite3_file* real_of(sqlite3_file* file) { return reinterpret_cast<File*>(file)->real; }

int close(sqlite3_file* f) { return real_of(f)->pMethods->xClose(real_of(f)); }
int read(sqlite3_file* f, void* data, int n, sqlite3_int64 at) {
  if (fails(false, true)) return faults->code == SQLITE_CORRUPT ? SQLITE_CORRUPT : SQLITE_IOERR_READ;
  return real_of(f)->pMethods->xRead(real_of(f), data, n, at);
}
int write(sqlite3_file* f, const void* data, int n, sqlite3_int64 at) {
  if (fails(true)) {
    const int code = faults->code;
    if (code == SQLITE_FULL && n > 1) (void)real_of(f)->pMethods->xWrite(real_of(f), data, n / 2, at);
    return code == SQLITE_FULL ? SQLITE_FULL : SQLITE_IOERR_WRITE;
  }
  return real_of(f)->pMethods->xWrite(real_of(f), data, n, at);
}
int truncate(sqlite3_file* f, sqlite3_int64 size) {
  if (fails(true)) return SQLITE_IOERR_TRUNCATE;
  return real_of(f)->pMethods->xTruncate(real_of(f), size);
}
int sync(sqlite3_file* f, int flags) {
  if (fails(true)) return SQLITE_IOERR_FSYNC;
  return real_of(f)->pMethods->xSync(real_of(f), flags);
}
int file_size(sqlite3_file* f, sqlite3_int64* size) {
  if (fails(false)) return SQLITE_IOERR_FSTAT;
  return real_of(f)->pMethods->xFileSize(real_of(f), size);
}
int lock(sqlite3_file* f, int level) {
  if (fails(false)) return SQLITE_IOERR_LOCK;
  return real_of(f)->pMethods->xLock(real_of(f), level);
}
int unlock(sqlite3_file* f, int level) { return real_of(f)->pMethods->xUnlock(real_of(f), level); }
int check_reserved(sqlite3_file* f, int* out) { return real_of(f)->pMethods->xCheckReservedLock(real_of(f), out); }
int file_control(sqlite3_file* f, int op, void* arg) { return real_of(f)->pMethods->xFileControl(real_of(f), op, arg); }
int sector_size(sqlite3_file* f) { return real_of(f)->pMethods->xSectorSize(real_of(f)); }
int characteristics(sqlite3_file* f) { return real_of(f)->pMethods->xDeviceCharacteristics(real_of(f)); }
int shm_map(sqlite3_file* f, int page, int size, int extend, void volatile** out) {
  if (fails(false)) return SQLITE_IOERR_SHMMAP;
  return real_of(f)->pMethods->xShmMap(real_of(f), page, size, extend, out);
}
int shm_lock(sqlite3_file* f, int offset, int n, int flags) {
  if ((flags & SQLITE_SHM_LOCK) && fails(false)) return SQLITE_IOERR_SHMLOCK;
  return real_of(f)->pMethods->xShmLock(real_of(f), offset, n, flags);
}
void shm_barrier(sqlite3_file* f) { real_of(f)->pMethods->xShmBarrier(real_of(f)); }
int shm_unmap(sqlite3_file* f, int remove) { return real_of(f)->pMethods->xShmUnmap(real_of(f), remove); }

const sqlite3_io_methods kMethods = {
    2,         close,          read,         write,       truncate,        sync,    file_size, lock,
    unlock,    check_reserved, file_control, sector_size, characteristics, shm_map, shm_lock,  shm_barrier,
    shm_unmap, nullptr,        nullptr,
};

int open(sqlite3_vfs*, const char* name, sqlite3_file* f, int flags, int* out_flags) {
  auto* file = reinterpret_cast<File*>(f);
  file->base.pMethods = nullptr;
  if (fails(false)) return SQLITE_CANTOPEN;
  file->real = reinterpret_cast<sqlite3_file*>(file + 1);
  std::memset(file->real, 0, static_cast<size_t>(real_vfs->szOsFile));
  const int rc = real_vfs->xOpen(real_vfs, name, file->real, flags, out_flags);
  if (rc == SQLITE_OK) file->base.pMethods = &kMethods;
  return rc;
}
int access(sqlite3_vfs*, const char* name, int flags, int* out) {
  if (fails(false)) return SQLITE_IOERR_ACCESS;
  return real_vfs->xAccess(real_vfs, name, flags, out);
}

VfsFaults* make() {
  faults = new VfsFaults;
  real_vfs = sqlite3_vfs_find(nullptr);
  auto* mine = new sqlite3_vfs(*real_vfs);
  mine->pNext = nullptr;
  mine->zName = kFaultyVfs;
  mine->szOsFile = static_cast<int>(sizeof(File)) + real_vfs->szOsFile;
  mine->xOpen = open;
  mine->xAccess = access;
  sqlite3_vfs_register(mine, 0);
  return faults;
}

MemoryFaults* memory = nullptr;
sqlite3_mem_methods real_memory;

bool memory_fails() {
  const int64_t call = ++memory->calls, wanted = memory->fail_at;
  return wanted > 0 && (call == wanted || (memory->forever && call > wanted));
}
void* allocate(int size) { return memory_fails() ? nullptr : real_memory.xMalloc(size); }
void* reallocate(void* old, int size) { return memory_fails() ? nullptr : real_memory.xRealloc(old, size); }

MemoryFaults* make_memory() {
  memory = new MemoryFaults;
  sqlite3_config(SQLITE_CONFIG_GETMALLOC, &real_memory);
  sqlite3_mem_methods mine = real_memory;
  mine.xMalloc = allocate;
  mine.xRealloc = reallocate;
  sqlite3_config(SQLITE_CONFIG_MALLOC, &mine);
  return memory;
}

}  // namespace

MemoryFaults& memory_faults() {
  static MemoryFaults* instance = make_memory();
  return *instance;
}

VfsFaults& vfs_faults() {
  static VfsFaults* instance = make();
  return *instance;
}

}  // namespace quartet::cache::test
