// Functions that libc++, its exceptions and wasi-libc leave undefined in a module with one thread
// and without a file system of its own.
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <system_error>
#include <thread>

#include <sys/stat.h>
#include <unwind.h>

extern "C" {

// The exceptions of the single thread. cxa_exception.cpp reads these two members.
struct CaughtExceptions {
  void* caught;
  unsigned uncaught;
};
CaughtExceptions* __cxa_get_globals() {
  static CaughtExceptions all{};
  return &all;
}
CaughtExceptions* __cxa_get_globals_fast() { return __cxa_get_globals(); }

// Objects of the single thread live as long as the module.
int __cxa_thread_atexit(void (*)(void*), void*, void*) { return 0; }

// Clang calls the personality function by the second name, and emscripten defines the first.
_Unwind_Reason_Code __gxx_personality_wasm0(int, _Unwind_Action, std::uint64_t, _Unwind_Exception*,
                                            _Unwind_Context*);
_Unwind_Reason_Code __gxx_wasm_personality_v0(int version, _Unwind_Action actions,
                                              std::uint64_t exception_class,
                                              _Unwind_Exception* exception,
                                              _Unwind_Context* context) {
  return __gxx_personality_wasm0(version, actions, exception_class, exception, context);
}
}

// With one thread, every lock can be taken at once.
std::mutex::~mutex() noexcept = default;
void std::mutex::lock() {}
bool std::mutex::try_lock() noexcept { return true; }
void std::mutex::unlock() noexcept {}
unsigned std::thread::hardware_concurrency() noexcept { return 1; }

std::thread::~thread() = default;
void std::thread::join() {}
std::__thread_struct::__thread_struct() : __p_(nullptr) {}
std::__thread_struct::~__thread_struct() = default;
std::condition_variable::~condition_variable() = default;
void std::condition_variable::notify_one() noexcept {}
void std::condition_variable::notify_all() noexcept {}
void std::condition_variable::wait(std::unique_lock<std::mutex>&) noexcept {}
void std::condition_variable::__do_timed_wait(
    std::unique_lock<std::mutex>&,
    std::chrono::time_point<std::chrono::system_clock, std::chrono::nanoseconds>) noexcept {}

std::filesystem::file_status std::filesystem::__status(const path& name, std::error_code* error) {
  struct stat found {};
  const bool there = ::stat(name.c_str(), &found) == 0;
  if (error != nullptr)
    *error = there ? std::error_code() : std::error_code(errno, std::generic_category());
  if (!there) return file_status(file_type::not_found);
  return file_status(S_ISDIR(found.st_mode) ? file_type::directory : file_type::regular);
}

// The tag of C++ exceptions, by whose name the compiler throws and catches.
asm(R"(
  .tagtype __cpp_exception i32
  .globl __cpp_exception
__cpp_exception:
)");
