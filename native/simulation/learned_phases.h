// Fast-forward of message graphs by memory of phases (simulation/phase_memory.h): a message that begins as in a phase that is
// known is not sent as packets, but comes when it did then.
//
// Messages that share a direction of a link are of one phase, which is found as they begin; a message has a link until its last
// byte has passed it. A phase that begins unlike all that are known is simulated packet by packet in the fabric, on the
// connections that there are, and remembered when it is over. While a phase goes on by memory every message that begins, and
// every one that does not, is compared with what is remembered: where nothing fits any more, what is left of its messages is sent
// as packets from there on.
//
// The judge (simulation/phase_judge.h): several times in a run, all that begins is simulated, known or not, and its phases are
// compared with those that are remembered.
//
// It decides by times and sizes of messages alone, in the order in which one thread carries a fabric out.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/types.h"
#include "endpoint/network_traffic.h"
#include "simulation/config.h"
#include "simulation/message_ways.h"
#include "simulation/phase_judge.h"
#include "simulation/phase_memory.h"

namespace weir {

class LearnedPhases {
 public:
  // Whom it tells.
  class Network {
   public:
    virtual void send(Time now, uint32_t flow, uint32_t word, uint64_t bytes) = 0;
    // A message has come, or its sender has heard of that.
    virtual void tell(uint32_t nic, bool arrived, uint32_t word, Time now) = 0;
    // A message is complete, with all its bytes.
    virtual void finish(uint32_t flow, uint64_t bytes, Time posted, Time now) = 0;
    // Bytes of messages that a flow's receiver has taken, of all that were sent.
    virtual uint64_t received(uint32_t flow) const = 0;
    virtual void wake_host(uint32_t nic, Time at) = 0;

   protected:
    ~Network() = default;
  };

  // `messages`: how many there will be, about. The configuration must outlive it, and so must the network.
  LearnedPhases(const SimulationConfig& config, Network& network, uint64_t messages, std::vector<uint32_t> machine_of_nic);

  // A message begins.
  void begin(Time now, uint32_t flow, uint32_t word, uint64_t bytes);
  // One that was sent as packets has come, or is acknowledged. False: it is none of any phase.
  bool heard(Time now, uint32_t flow, bool arrived, uint32_t word);
  // What is due at a machine happens.
  void wake(uint32_t machine, Time now);
  LearnedReport report() const;

 private:
  // What is known of a flow.
  struct Flow {
    uint8_t age = 0;        // 1: it has had a message
    uint8_t surprises = 0;  // how often a phase that it began went on unlike what is remembered
    bool again = false;     // the next phase that it begins is simulated
    uint32_t delayed = 0;   // messages that are about to be sent
    uint64_t sent = 0;      // bytes, as packets
  };
  struct Message {
    uint32_t flow, word, number, component;
    uint32_t generation = 0;
    uint32_t version = 0;  // of what is scheduled
    uint64_t bytes;
    uint64_t sent;      // of these, as packets
    uint64_t position;  // of all that its flow has sent as packets, at its end
    Time begins;
    uint8_t age;
    bool real;
    Time arrives, acknowledged;  // kNever: it is not known
    Time expected;               // when it should have come, of a line; kNever: it is not known
    Time answer;                 // its acknowledgement behind that
    bool has_arrived, is_acknowledged;
  };
  struct Component {
    std::vector<uint32_t> members;
    std::unordered_map<uint32_t, uint32_t> numbers;  // messages by flow; of several members
    std::vector<uint32_t> candidates;                // phases
    bool line = true;                                // messages of one flow alone, one behind the other
    bool alone = false;                              // these are all known, and may stay so
    bool real = false, clean = true, used = false, judged = false;
    Time begins = 0;
    uint32_t live = 0;
    uint32_t place = 0;  // in the first candidate: the first message that has not begun
    uint32_t version = 0;
    // Whether memory says when its messages come, or would.
    bool known() const { return alone || !candidates.empty(); }
  };
  enum class What : uint8_t { arrives, acknowledged, send, check };
  struct Due {
    Time at;
    uint64_t sequence;
    What what;
    uint32_t index;  // of the message, or the component
    uint32_t version;
    uint32_t generation;
  };
  struct Use {
    uint32_t message;
    uint32_t generation;
    Time after;
  };
  static bool later(const Due& a, const Due& b) { return a.at != b.at ? a.at > b.at : a.sequence > b.sequence; }

  bool meets(const Message& message, Time after, Time now) const;
  void send(uint32_t message, Time now);
  void send_at(uint32_t message, Time now);
  void touched(Time now, uint32_t flow);
  uint32_t join(uint32_t message);
  void recount(Component& own);
  uint32_t number_of(Component& own, uint32_t flow);
  void remember(uint32_t component);
  void find_candidates(Component& own);
  bool fits(const Component& own, uint32_t phase, uint32_t message) const;
  void go_on(uint32_t component, Time now);
  void foretell(Component& own, uint32_t message, Time now);
  bool misses(Component& own, Time now);
  void leave(uint32_t component, Time now);
  void end(uint32_t message, Time now, bool arrived);
  void close(uint32_t component);
  PhaseMessage described(const Component& own, const Message& message) const;
  uint32_t compare(const Component& own);
  void expect(const Component& own);
  void expect(Message& message, const Message* before) const;
  void learn_of_line(const Component& own, uint32_t message);
  void count(const Message& message);
  void schedule(uint32_t nic, Time now, Due due);
  bool simulates(uint32_t flow, bool known);
  void look(Time now);
  void turn_off(Time now);
  void ask(uint32_t machine, Time now);
  uint64_t key(uint32_t flow, uint32_t word) const { return uint64_t{flow} << 32 | word; }

  const SimulationConfig& config_;
  Network& network_;
  std::vector<uint32_t> machine_of_nic_;
  uint64_t expected_;
  Time window_;
  PhaseMemory memory_;
  MessageWays ways_;
  std::vector<Flow> flows_;
  std::vector<std::vector<Use>> uses_;  // by direction
  std::vector<Message> messages_;
  std::vector<uint32_t> free_messages_;
  std::vector<Component> components_;
  std::vector<uint32_t> free_components_;
  std::unordered_map<uint64_t, uint32_t> sent_;  // messages that are packets
  std::vector<std::vector<Due>> due_;            // heaps by machine
  std::vector<Time> wakes_;                      // by machine: the earliest that was asked for
  std::vector<uint32_t> touched_;
  uint32_t here_ = 0;  // the machine that does something now
  uint64_t sequence_ = 0;
  uint64_t begun_ = 0;
  bool off_ = false;
  LearnedReport report_;
  PhaseJudge judge_;
  double sent_bytes_ = 0;                 // as packets
  double took_ = 0, took_contended_ = 0;  // time of messages that are over
};

}  // namespace weir
