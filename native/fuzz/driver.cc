// Runs a fuzzer where the compiler brings no libFuzzer: it draws inputs from a seed, half of them anew, and half by changing
// files that are there already. It takes some of libFuzzer's options, and ends as that does. Coverage does not lead it, so it
// adds no files.
//   weir_fuzz_NAME [-seed=N] [-runs=N] [-max_total_time=SECONDS] [-max_len=BYTES] [-artifact_prefix=PATH] [FOLDER...]
//   weir_fuzz_NAME FILE...    runs these inputs, once each
// Whatever ends the process leaves the input that did it in the file PATHcurrent.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

using Bytes = std::vector<uint8_t>;
using Clock = std::chrono::steady_clock;

constexpr unsigned kLongestRun = 60;  // s; an input takes milliseconds
constexpr int kInterrupted = 72;      // libFuzzer's exit status then

volatile sig_atomic_t interrupted = 0;

struct Options {
  uint64_t seed = 1;
  uint64_t runs = UINT64_MAX;
  double seconds = 1e9;
  uint64_t longest = 4'096;
  std::string prefix = "./";
  std::vector<std::string> files;
  std::vector<std::string> folders;
};

Options parse(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string_view argument = arguments[i];
    const size_t equals = argument.find('=');
    const std::string_view name = argument.substr(0, equals);
    const char* const value = equals == argument.npos ? "" : arguments[i] + equals + 1;
    if (name == "-seed") {
      options.seed = std::strtoull(value, nullptr, 10);
    } else if (name == "-runs") {
      options.runs = std::strtoull(value, nullptr, 10);
    } else if (name == "-max_total_time") {
      options.seconds = std::strtod(value, nullptr);
    } else if (name == "-max_len") {
      options.longest = std::max<uint64_t>(std::strtoull(value, nullptr, 10), 1);
    } else if (name == "-artifact_prefix") {
      options.prefix = value;
    } else if (!argument.starts_with("-")) {
      (std::filesystem::is_directory(argument) ? options.folders : options.files).emplace_back(argument);
    }
  }
  return options;
}

Bytes read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class Driver {
 public:
  explicit Driver(const Options& options)
      : options_(options),
        random_(options.seed, 0),
        current_(options.prefix + "current"),
        file_(open(current_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
    for (const std::string& folder : options.folders) {
      std::vector<std::filesystem::path> paths;
      for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry.path());
      std::ranges::sort(paths);  // the same seed and files give the same inputs
      for (const auto& path : paths) known_.push_back(read(path));
    }
  }

  int run() {
    std::fprintf(stderr, "no libFuzzer: inputs are drawn from seed %llu and %zu files, without coverage to lead\n",
                 static_cast<unsigned long long>(options_.seed), known_.size());
    const auto start = Clock::now();
    const auto seconds = [start] { return std::chrono::duration<double>(Clock::now() - start).count(); };
    uint64_t runs = 0;
    for (double told = 0; runs < options_.runs && interrupted == 0 && seconds() < options_.seconds; ++runs) {
      if (seconds() - told > 1) {
        told = seconds();
        std::fprintf(stderr, "#%llu\tpulse  exec/s: %.0f\n", static_cast<unsigned long long>(runs),
                     static_cast<double>(runs) / told);
      }
      once(draw());
    }
    close(file_);
    std::filesystem::remove(current_);
    std::fprintf(stderr, "stat::number_of_executed_units: %llu\n", static_cast<unsigned long long>(runs));
    return interrupted != 0 ? kInterrupted : 0;
  }

  void once(const Bytes& input) {
    const auto size = static_cast<ssize_t>(input.size());
    if (ftruncate(file_, 0) != 0 || pwrite(file_, input.data(), input.size(), 0) != size) {
      std::perror(current_.c_str());
      std::exit(1);
    }
    replay(input);
  }

  static void replay(const Bytes& input) {
    alarm(kLongestRun);
    LLVMFuzzerTestOneInput(input.data(), input.size());
    alarm(0);
  }

 private:
  uint64_t below(uint64_t limit) { return limit == 0 ? 0 : random_.next() % limit; }

  Bytes draw() {
    if (known_.empty() || below(2) == 0) {
      Bytes fresh(1 + below(uint64_t{1} << below(64 - static_cast<uint64_t>(__builtin_clzll(options_.longest)))));
      for (uint8_t& byte : fresh) byte = static_cast<uint8_t>(random_.next());
      return fresh;
    }
    Bytes input = known_[below(known_.size())];
    for (uint64_t changes = 1 + below(6); changes > 0; --changes) change(input);
    if (input.size() > options_.longest) input.resize(options_.longest);
    return input;
  }

  void change(Bytes& input) {
    const auto at = input.begin() + static_cast<ptrdiff_t>(below(input.size()));
    const auto some = static_cast<ptrdiff_t>(below(static_cast<uint64_t>(input.end() - at) + 1) >> below(8));
    switch (input.empty() ? 0 : below(5)) {
      case 0:
        input.insert(at, static_cast<uint8_t>(random_.next()));
        return;
      case 1:
        *at = static_cast<uint8_t>(random_.next());
        return;
      case 2:
        *at ^= static_cast<uint8_t>(1u << below(8));
        return;
      case 3:
        input.erase(at, at + some);
        return;
      default: {
        const Bytes piece(at, at + some);
        input.insert(input.begin() + static_cast<ptrdiff_t>(below(input.size())), piece.begin(), piece.end());
      }
    }
  }

  const Options& options_;
  weir::Random random_;
  std::string current_;
  int file_;
  std::vector<Bytes> known_;
};

}  // namespace

int main(int count, char** arguments) {
  const Options options = parse(count, arguments);
  for (const int number : {SIGINT, SIGTERM}) signal(number, [](int) { interrupted = 1; });
  if (options.files.empty()) return Driver(options).run();
  for (const std::string& file : options.files) {
    Driver::replay(read(file));
    std::fprintf(stderr, "Executed %s\n", file.c_str());
  }
  return 0;
}
