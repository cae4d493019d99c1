#include "addon/description.h"

#include <algorithm>
#include <utility>

#include "addon/capture_handle.h"
#include "addon/rows.h"
#include "addon/shared_switch_handle.h"
#include "addon/simulation_handle.h"
#include "addon/worker_handle.h"
#include "base/layout.h"

namespace weir {
namespace {

template <class T>
const char* array_type() {
  constexpr napi_typedarray_type kType = kTyped<T>;
  return kType == napi_uint8_array    ? "Uint8Array"
         : kType == napi_uint16_array ? "Uint16Array"
         : kType == napi_uint32_array ? "Uint32Array"
                                      : "Float64Array";
}

// The struct that it visits, and all that this has.
class Describer : public Visitor {
 public:
  explicit Describer(std::vector<TypeDescription>& types, bool columns = false) : types_(types), columns_(columns) {}

  void type(const char* name, const char* text) {
    own_.name = name;
    own_.text = text;
  }
  template <class T>
  void base(const T&) {
    own_.bases.push_back(add<T>(columns_));
  }
  template <class T>
  void operator()(const char* name, const T&, const About& about) {
    own_.fields.push_back({.name = name,
                           .type = columns_ ? array_type<T>() : type_of<T>(),
                           .text = about.text,
                           .unit = about.unit,
                           .range = about.range(),
                           .optional = about.optional});
  }
  template <class T>
  void columns(const char* name, const std::vector<T>&, const About& about) {
    own_.fields.push_back(
        {.name = name, .type = add<T>(true), .text = about.text, .unit = "", .range = "", .optional = about.optional});
  }

  // Returns its name.
  template <class T>
  std::string add(bool columns = false) {
    Describer inner(types_, columns);
    const T instance{};
    describe(inner, instance);
    if (columns && inner.own_.name.find("Flows") == std::string::npos) inner.own_.name += "Columns";
    const auto known = [&](const TypeDescription& type) { return type.name == inner.own_.name; };
    if (std::ranges::none_of(types_, known)) types_.push_back(inner.own_);
    return inner.own_.name;
  }

 private:
  template <class T>
  std::string type_of() {
    if constexpr (Described<T>) {
      return add<T>();
    } else if constexpr (std::is_same_v<T, bool>) {
      return "boolean";
    } else if constexpr (Worded<T>) {
      std::string out;
      for (const char* word : words_of(T{})) out += std::string(out.empty() ? "" : " | ") + "\"" + word + "\"";
      return out;
    } else if constexpr (Number<T>) {
      return "number";
    } else if constexpr (std::convertible_to<T, std::string>) {
      return "string";
    } else if constexpr (kIsOptional<T>) {
      return type_of<typename T::value_type>();
    } else if constexpr (kIsColumn<T>) {
      return array_type<typename T::value_type>();
    } else if constexpr (std::is_bounded_array_v<T>) {
      return array_type<std::remove_extent_t<T>>();
    } else if constexpr (std::is_same_v<T, CounterLabels>) {
      return "Record<string, string>";
    } else if constexpr (Counted<T>) {
      return "Record<string, number>";
    } else if constexpr (std::derived_from<T, Napi::Value>) {
      return "Buffer";
    } else if constexpr (std::is_same_v<T, std::shared_ptr<SharedSwitch>>) {
      return "object";
    } else if constexpr (requires(T pair) { pair.second; }) {
      return "[" + type_of<typename T::first_type>() + ", " + type_of<typename T::second_type>() + "]";
    } else {
      using Element = typename T::value_type;
      const std::string each = type_of<Element>();
      return Worded<Element> ? "(" + each + ")[]" : each + "[]";
    }
  }

  std::vector<TypeDescription>& types_;
  bool columns_;
  TypeDescription own_;
};

// Places of a record of `Rows` (base/layout.h, addon/rows.h).
template <class Rows>
class Places : public Rows {
 public:
  void type(const char* name, const char* /*text*/) {
    if (out.name.empty()) out.name = name;
  }
  void base(const auto& part) { describe(*this, part); }
  template <class T>
  void operator()(const char* name, const T& value, const About& about) {
    out.places.push_back({name, this->template place_of<T>()});
    Rows::operator()(name, value, about);
  }
  RecordDescription out;
};

template <class T, class Rows>
RecordDescription record() {
  Places<Rows> places;
  const T instance{};
  describe(places, instance);
  places.out.words = places.words();
  return places.out;
}

template <class Enum>
WordsDescription words(const char* name) {
  WordsDescription out{name, {}};
  for (const char* word : words_of(Enum{})) out.words.emplace_back(word);
  return out;
}

}  // namespace

Description description() {
  Description out;
  Describer told(out.configuration);
  told.add<WorkerConfig>();
  told.add<SimulationConfig>();
  told.add<QueuePairChange>();
  told.add<VerbsQueuePairParameters>();
  told.add<CaptureConfig>();
  told.add<Worker::PortPlace>();
  Describer reported(out.reports);
  reported.add<Capture::Counts>();
  reported.add<CounterEntry>();
  reported.add<PuntedCopy>();
  reported.add<ForwardingEntry>();
  reported.add<SwitchCopy>();
  reported.add<QueuePairCopy>();
  reported.add<HistogramCopy>();
  reported.add<Outcome>();
  reported.add<NumberedQueue>();
  reported.add<SimulationProgress>();
  reported.add<SimulationManifest>();
  reported.add<SimulationCounters>();
  out.records = {record<WorkCommand, Layout>(), record<Completion, Layout>(), record<Record, Row>(),
                 record<Simulation::Finished, Row>()};
  out.words = {words<WorkOpcode>("WorkOpcode"), words<Operation>("Operation"), words<Record::Kind>("RecordKind")};
  return out;
}

}  // namespace weir
