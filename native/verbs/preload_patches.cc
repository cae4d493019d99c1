#include "verbs/preload_patches.h"

#if defined(__x86_64__)

#include <elf.h>
#include <emmintrin.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

#include "verbs/preload_instruction_length.h"
#include "verbs/preload_turns.h"

namespace weir {
namespace {

constexpr uint8_t kNothing = 0x90;
constexpr std::array<uint8_t, 2> kRdtsc{0x0f, 0x31};
constexpr std::array<uint8_t, 3> kRdtscp{0x0f, 0x01, 0xf9};
constexpr std::array<uint8_t, 2> kSyscall{0x0f, 0x05};
// Part of the path of GCC's OpenMP.
constexpr const char* kOpenMp = "/libgomp.so";

struct Patch {
  const uint8_t* code;
  Fault what;
};
struct Object {
  ElfW(Addr) base;
  const ElfW(Phdr) * headers;
};

struct Loaded {
  std::vector<Object> objects;
  std::vector<Patch> found;
};

// Who faults reads this while another thread may load something: a list is replaced and stays. Libraries come and go before this
// one's variables begin, and after they end.
constinit std::atomic<const std::vector<Patch>*> patches{nullptr};
// What was loaded when it was looked at last.
std::vector<Object>& known() {
  static auto& objects = *new std::vector<Object>;
  return objects;
}

// The tables for unwinding of an object (LSB Core 5.0, 10.6: .eh_frame and .eh_frame_hdr).
class Functions {
 public:
  explicit Functions(const uint8_t* header) {
    constexpr uint8_t kCount = 0x03, kSorted = 0x3b;  // udata4; datarel, sdata4
    if (header[0] != 1 || header[2] != kCount || header[3] != kSorted || size_of(header[1]) != 4) return;
    header_ = header;
    uint32_t count;
    std::memcpy(&count, header + 8, sizeof count);
    rows_ = {reinterpret_cast<const Row*>(header + 12), count};
  }
  // The function that has this place in it.
  std::span<const uint8_t> around(const uint8_t* place) const {
    const auto offset = static_cast<int32_t>(place - header_);
    const auto after = std::ranges::upper_bound(rows_, offset, {}, &Row::function);
    if (rows_.empty() || after == rows_.begin()) return {};
    const uint8_t* const begin = header_ + std::prev(after)->function;
    const uint32_t length = length_at(header_ + std::prev(after)->description);
    return static_cast<size_t>(place - begin) < length ? std::span{begin, length} : std::span<const uint8_t>{};
  }

 private:
  struct Row {
    int32_t function;
    int32_t description;
  };

  static size_t size_of(uint8_t encoding) { return (encoding & 0x0f) == 0x03 || (encoding & 0x0f) == 0x0b ? 4 : 0; }
  // Of the function that an FDE describes; 0 where it is said in another way than compilers do.
  static uint32_t length_at(const uint8_t* fde) {
    uint32_t back, length;
    std::memcpy(&back, fde + 4, sizeof back);
    const uint8_t* cie = fde + 4 - back;
    const char* augmentation = reinterpret_cast<const char*>(cie + 9);
    const bool old = cie[8] == 1;
    if (augmentation[0] != 'z') return 0;
    const uint8_t* next = cie + 9 + std::strlen(augmentation) + 1;
    const auto skip_number = [&next] {
      while ((*next++ & 0x80) != 0) {
      }
    };
    skip_number();                                    // code alignment
    skip_number();                                    // data alignment
    old ? static_cast<void>(++next) : skip_number();  // register of the return address
    skip_number();                                    // length of what follows
    for (const char* letter = augmentation + 1; *letter != 0; ++letter) {
      if (*letter == 'R') {
        if (size_of(*next) != 4) return 0;
        std::memcpy(&length, fde + 12, sizeof length);
        return length;
      }
      if (*letter == 'L') ++next;
      if (*letter != 'P') continue;
      const uint8_t encoding = *next++;
      next += size_of(encoding) == 4 ? 4 : 8;
    }
    return 0;
  }

  const uint8_t* header_ = nullptr;
  std::span<const Row> rows_;
};

bool begins_instruction(std::span<const uint8_t> function, const uint8_t* place) {
  while (function.data() < place) {
    const size_t length = instruction_length(function);
    if (length == 0) return false;
    function = function.subspan(std::min(length, function.size()));
  }
  return function.data() == place;
}

// The whole pages of a place in code.
std::span<uint8_t> pages_of(const uint8_t* place, size_t length) {
  static const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const uintptr_t from = reinterpret_cast<uintptr_t>(place) / page * page;
  return {reinterpret_cast<uint8_t*>(from), reinterpret_cast<uintptr_t>(place) + length - from};
}

void write(const uint8_t* place, std::span<const uint8_t> code) {
  if (!open_code(place, code.size())) refuse("code that may not be changed");
  std::ranges::copy(code, const_cast<uint8_t*>(place));
  const std::span<uint8_t> pages = pages_of(place, code.size());
  ::mprotect(pages.data(), pages.size(), PROT_READ | PROT_EXEC);
}

void halt_at(const uint8_t* place, size_t length) {
  std::array<uint8_t, kRdtscp.size()> code;
  code.fill(kNothing);
  code[0] = kHalt;
  write(place, std::span(code).first(length));
}

// `calls`: also for system calls.
void look_for(std::span<const uint8_t> text, bool calls, const Functions& functions, std::vector<Patch>& found) {
  const auto look = [&](size_t at) {
    const std::span<const uint8_t> code = text.subspan(at);
    const auto is = [code](const auto& instruction) {
      return code.size() >= instruction.size() && std::equal(instruction.begin(), instruction.end(), code.begin());
    };
    Fault what = is(kRdtsc) ? Fault::rdtsc : is(kRdtscp) ? Fault::rdtscp : Fault::other;
    if (calls && is(kSyscall)) what = Fault::call;
    if (what != Fault::other && begins_instruction(functions.around(code.data()), code.data()))
      found.push_back({code.data(), what});
  };
  // Libraries are megabytes, and each process looks at all of its own: 16 places at a time, by the first two bytes of
  // instructions.
  const auto all = [](uint8_t byte) { return _mm_set1_epi8(static_cast<char>(byte)); };
  const __m128i first = all(kRdtsc[0]), of_rdtsc = all(kRdtsc[1]), of_rdtscp = all(kRdtscp[1]), of_call = all(kSyscall[1]);
  size_t at = 0;
  for (; at + sizeof first < text.size(); at += sizeof first) {
    const auto from = [&](size_t place) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(text.data() + place)); };
    const __m128i second = from(at + 1);
    const __m128i ticks = _mm_or_si128(_mm_cmpeq_epi8(second, of_rdtsc), _mm_cmpeq_epi8(second, of_rdtscp));
    const __m128i any = _mm_or_si128(ticks, _mm_cmpeq_epi8(second, of_call));
    auto places = static_cast<uint32_t>(_mm_movemask_epi8(_mm_and_si128(_mm_cmpeq_epi8(from(at), first), any)));
    for (; places != 0; places &= places - 1) look(at + static_cast<size_t>(std::countr_zero(places)));
  }
  for (; at < text.size(); ++at) look(at);
}

int look_at(dl_phdr_info* info, size_t, void* context) {
  auto& [objects, found] = *static_cast<Loaded*>(context);
  const std::span headers(info->dlpi_phdr, info->dlpi_phnum);
  const auto unwinding = std::ranges::find(headers, ElfW(Word){PT_GNU_EH_FRAME}, &ElfW(Phdr)::p_type);
  // The kernel's page for clocks is asked by nobody, and cannot be changed.
  if (unwinding == headers.end() || std::strcmp(info->dlpi_name, "linux-vdso.so.1") == 0) return 0;
  const auto is_this = [info](const Object& one) { return one.base == info->dlpi_addr && one.headers == info->dlpi_phdr; };
  objects.push_back({info->dlpi_addr, info->dlpi_phdr});
  if (std::ranges::any_of(known(), is_this)) return 0;
  const auto at = [info](const ElfW(Phdr) & header) {
    return std::span{reinterpret_cast<const uint8_t*>(info->dlpi_addr + header.p_vaddr), header.p_memsz};
  };
  const Functions functions(at(*unwinding).data());
  for (const ElfW(Phdr) & header : headers) {
    if (header.p_type != PT_LOAD || (header.p_flags & PF_X) == 0) continue;
    look_for(at(header), std::strstr(info->dlpi_name, kOpenMp) != nullptr, functions, found);
  }
  return 0;
}

}  // namespace

// Other threads may run on these pages.
bool open_code(const uint8_t* place, size_t length) {
  const std::span<uint8_t> pages = pages_of(place, length);
  return ::mprotect(pages.data(), pages.size(), PROT_READ | PROT_WRITE | PROT_EXEC) == 0;
}

void patch_code() {
  patch_loaded();
  // The loader calls this function, which does nothing, for debuggers.
  halt_at(reinterpret_cast<const uint8_t*>(_r_debug.r_brk), 1);
}

bool redirect(void* function, const void* to) {
  // jmp *0(%rip), and where to.
  std::array<uint8_t, 14> code{0xff, 0x25};
  std::memcpy(code.data() + 6, &to, sizeof to);
  const auto* const place = static_cast<const uint8_t*>(function);
  // Functions end by a return, or by a jump to another one.
  constexpr std::array<uint8_t, 3> kEnds{0xc3, 0xe9, 0xeb};
  for (size_t at = 0, length; at < code.size(); at += length) {
    length = instruction_length({place + at, 16});
    if (length == 0 || std::ranges::find(kEnds, place[at]) != kEnds.end()) return false;
  }
  write(place, code);
  return true;
}

Fault fault_at(const uint8_t* code) {
  if (reinterpret_cast<ElfW(Addr)>(code) == _r_debug.r_brk) return Fault::loaded;
  if (const std::vector<Patch>* const all = patches.load(std::memory_order_acquire)) {
    if (const auto found = std::ranges::find(*all, code, &Patch::code); found != all->end()) return found->what;
  }
  // Code that was not there, or is in no table, is trapped where the machine allows it.
  if (std::equal(kRdtsc.begin(), kRdtsc.end(), code)) return Fault::rdtsc;
  return std::equal(kRdtscp.begin(), kRdtscp.end(), code) ? Fault::rdtscp : Fault::other;
}

void patch_loaded() {
  if (_r_debug.r_state != r_debug::RT_CONSISTENT) return;
  Loaded loaded;
  ::dl_iterate_phdr(look_at, &loaded);
  known() = std::move(loaded.objects);
  const std::vector<Patch>& found = loaded.found;
  if (found.empty()) return;
  auto* const all = new std::vector<Patch>(found);
  if (const std::vector<Patch>* const before = patches.load(std::memory_order_relaxed)) {
    std::ranges::copy_if(*before, std::back_inserter(*all), [&found](const Patch& patch) {
      return std::ranges::find(found, patch.code, &Patch::code) == found.end();
    });
  }
  patches.store(all, std::memory_order_release);
  for (const auto& [code, what] : found) halt_at(code, what == Fault::rdtscp ? kRdtscp.size() : kRdtsc.size());
}

}  // namespace weir

#endif
