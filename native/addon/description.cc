#include "addon/description.h"

#include <string>
#include <utility>
#include <variant>

#include "addon/capture_handle.h"
#include "addon/fair_network_handle.h"
#include "addon/ideal_network_handle.h"
#include "addon/program_socket.h"
#include "addon/rows.h"
#include "addon/shared_switch_handle.h"
#include "addon/simulation_handle.h"
#include "addon/worker_handle.h"
#include "base/layout.h"
#include "congestion/written.h"
#include "endpoint/program_protocol.h"
#include "engine/daemon_nic.h"

namespace weir {
namespace {

Napi::Object object(Napi::Env env, const std::string& name) {
  Napi::Object out = Napi::Object::New(env);
  out.Set("name", name);
  return out;
}

void push(Napi::Array list, const Napi::Value& value) { list.Set(list.Length(), value); }

template <class T>
const char* array_type() {
  constexpr napi_typedarray_type kType = kTyped<T>;
  return kType == napi_uint8_array    ? "Uint8Array"
         : kType == napi_uint16_array ? "Uint16Array"
         : kType == napi_uint32_array ? "Uint32Array"
                                      : "Float64Array";
}

// The struct that it visits, and all that this has, are added to `structs`.
class Describer : public Visitor {
 public:
  explicit Describer(Napi::Array structs)
      : structs_(structs),
        bases_(Napi::Array::New(structs.Env())),
        fields_(Napi::Array::New(structs.Env())),
        written_(Napi::Array::New(structs.Env())) {}

  void type(const char* name, const char* text) {
    name_ = name;
    text_ = text;
  }
  template <class T>
  void base(const T& part) {
    if (columns_) {
      const std::string name = name_, text = text_;
      describe(*this, part);
      name_ = name;
      text_ = text;
      return;
    }
    push(bases_, Napi::String::New(structs_.Env(), add<T>()));
  }
  void defaults() { defaults_ = true; }
  template <class T, std::derived_from<About> A>
  void operator()(const char* name, const T& value, const A& about) {
    if (columns_) {
      if constexpr (std::is_arithmetic_v<T> || Worded<T>) add_field(name, array_type<InColumn<T>>(), about);
    } else if constexpr (Variant<T>) {
      add_field(name, words(words_of(value)), about);
      add_alternatives(name, value);
    } else {
      add_field(name, type_of<T>(), about);
      if constexpr (std::same_as<A, Written>) add_written(name, value, about);
    }
  }

  // Returns its name.
  template <class T>
  std::string add() {
    Describer inner(structs_);
    if constexpr (kAreColumns<T>) {
      inner.columns_ = true;
      const typename T::value_type instance{};
      describe(inner, instance);
    } else {
      const T instance{};
      describe(inner, instance);
    }
    for (uint32_t i = 0; i < structs_.Length(); ++i) {
      if (structs_.Get(i).As<Napi::Object>().Get("name").ToString().Utf8Value() == inner.name_) return inner.name_;
    }
    Napi::Object out = object(structs_.Env(), inner.name_);
    out.Set("text", inner.text_);
    out.Set("bases", inner.bases_);
    out.Set("fields", inner.fields_);
    out.Set("written", inner.written_);
    push(structs_, out);
    return inner.name_;
  }

 private:
  void add_field(const char* name, const std::string& type, const About& about) {
    Napi::Object field = object(structs_.Env(), name);
    field.Set("type", type);
    field.Set("text", about.text);
    field.Set("unit", about.unit);
    field.Set("range", about.range());
    field.Set("optional", about.optional);
    push(fields_, field);
  }
  template <class T>
  void add_written(const char* name, const T& value, const Written& about) {
    Napi::Object written = object(structs_.Env(), about.name != nullptr ? about.name : name);
    written.Set("kind", about.kind);
    written.Set("unit", about.plain);
    written.Set("description", about.meaning);
    if (about.spelling != nullptr) written.Set("otherSpelling", about.spelling);
    if (about.lowest <= about.highest) {
      Napi::Object bounds = Napi::Object::New(structs_.Env());
      bounds.Set("min", about.lowest);
      bounds.Set("max", about.highest);
      bounds.Set("whole", about.whole);
      written.Set("bounds", bounds);
    }
    if (defaults_) written.Set("standard", static_cast<double>(value));
    push(written_, written);
  }
  template <class... Alternatives>
  void add_alternatives(const char* name, const std::variant<Alternatives...>& value) {
    size_t place = 0;
    const auto add_one = [&]<class T>() {
      const char* word = words_of(value)[place++];
      const std::string text = std::string("Where ") + name + " says so.";
      if constexpr (Described<T>) add_field(word, add<T>(), field::optional(field::any(text.c_str())));
    };
    (add_one.template operator()<Alternatives>(), ...);
  }
  static std::string words(const auto& each) {
    std::string out;
    for (const char* word : each) out += std::string(out.empty() ? "" : " | ") + "\"" + word + "\"";
    return out;
  }
  template <class T>
  std::string type_of() {
    if constexpr (Described<T> || kAreColumns<T>) {
      return add<T>();
    } else if constexpr (std::is_same_v<T, bool>) {
      return "boolean";
    } else if constexpr (Worded<T>) {
      return words(words_of(T{}));
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

  Napi::Array structs_;
  Napi::Array bases_;
  Napi::Array fields_;
  Napi::Array written_;
  std::string name_;
  std::string text_;
  bool columns_ = false;   // each field is an array
  bool defaults_ = false;  // users have what the struct begins with
};

// Places of a record's fields, by `Rows`: RecordAt or RowWriter.
template <class Rows>
class Places : public Rows {
 public:
  explicit Places(Napi::Array places) : places_(places) {}
  void type(const char* name, const char* /*text*/) {
    if (name_.empty()) name_ = name;
  }
  void base(const auto& part) { describe(*this, part); }
  void operator()(const char* name, const auto& value, const About& about) {
    push(places_, to_js(places_.Env(), std::pair(name, this->place_of(value))));
    Rows::operator()(name, value, about);
  }
  const std::string& name() const { return name_; }

 private:
  Napi::Array places_;
  std::string name_;
};

template <class T, class Rows>
void add_record(Napi::Array records) {
  const Napi::Array at = Napi::Array::New(records.Env());
  Places<Rows> places(at);
  const T instance{};
  describe(places, instance);
  Napi::Object out = object(records.Env(), places.name());
  out.Set("words", static_cast<double>(places.words()));
  out.Set("at", at);
  push(records, out);
}

template <class Enum>
void add_words(Napi::Array list, const char* name) {
  Napi::Object out = object(list.Env(), name);
  out.Set("words", to_js(list.Env(), words_of(Enum{})));
  push(list, out);
}

}  // namespace

Napi::Value description(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  Napi::Object out = Napi::Object::New(env);
  const auto list = [&](const char* name) {
    Napi::Array made = Napi::Array::New(env);
    out.Set(name, made);
    return made;
  };
  Describer configuration(list("configuration"));
  configuration.add<FaultParameters>();
  configuration.add<NicNeighbourParameters>();
  configuration.add<WorkerConfig>();
  configuration.add<SimulationConfig>();
  configuration.add<ProgramPlan>();
  configuration.add<IdealNetworkConfig>();
  configuration.add<FairNetworkConfig>();
  configuration.add<NetworkSize>();
  configuration.add<QueuePairChange>();
  configuration.add<ProgramChange>();
  configuration.add<VerbsQueuePairParameters>();
  configuration.add<ProgramAnswer>();
  configuration.add<CaptureConfig>();
  configuration.add<Worker::PortPlace>();
  Describer reports(list("reports"));
  reports.add<Capture::Counts>();
  reports.add<FaultState>();
  reports.add<CounterEntry>();
  reports.add<PuntedCopy>();
  reports.add<ForwardingEntry>();
  reports.add<NeighbourCopy>();
  reports.add<SwitchCopy>();
  reports.add<QueuePairCopy>();
  reports.add<ProgramCopy>();
  reports.add<NamedHistogram>();
  reports.add<Outcome>();
  reports.add<ProgramOpening>();
  reports.add<LentDescriptors>();
  reports.add<ProgramRequest>();
  reports.add<PeerCredentials>();
  reports.add<NumberedQueue>();
  reports.add<SimulationProgress>();
  reports.add<ProgramFate>();
  reports.add<HostNews>();
  reports.add<SimulationManifest>();
  reports.add<SimulationCounters>();
  reports.add<FastForwardReport>();
  reports.add<LearnedReport>();
  reports.add<OperationTimes>();
  const Napi::Array records = list("records");
  add_record<WorkCommand, RecordAt>(records);
  add_record<CompletionRun, RecordAt>(records);
  add_record<Record, RowWriter>(records);
  add_record<Simulation::Finished, RowWriter>(records);
  const Napi::Array words = list("words");
  add_words<WorkOpcode>(words, "WorkOpcode");
  add_words<Record::Kind>(words, "RecordKind");
  add_words<Operation>(words, "Operation");
  return out;
}

}  // namespace weir
