// What is told of messages of graphs that came from memory.
#pragma once

#include <string>

#include "base/describe.h"

namespace weir {

struct LearnedReport {
  std::string reason;
  double messages = 0;
  double skipped = 0;
  double bytes = 0;
  double skipped_bytes = 0;
  double phases = 0;
  double recalled = 0;
  double known = 0;
  double left = 0;
  double left_bytes = 0;
  double judged = 0;
  double judged_messages = 0;
  double judged_bytes = 0;
  double share = 0;
  double stretches = 0;
  double error = 0;
  double bias = 0;
  double worst = 0;
  double message_error = 0;
  double message_p99 = 0;
  double contended = 0;
  double judged_contended = 0;
  double contended_error = 0;
};
void describe(auto& v, Of<LearnedReport> auto& report) {
  v.type("LearnedReport", "Messages of graphs that were not sent as packets, because phases like theirs were known.");
  v("reason", report.reason, field::any("Why nothing is skipped, or from some time on nothing more; empty: it is."));
  v("messages", report.messages, field::any("That were sent from machine to machine."));
  v("skipped", report.skipped, field::any("How many of these came by memory alone."));
  v("bytes", report.bytes, field::any("Of all."));
  v("skipped_bytes", report.skipped_bytes, field::any("Of those that were not sent as packets."));
  v("phases", report.phases, field::any("Phases that are over."));
  v("recalled", report.recalled, field::any("How many of these came from memory."));
  v("known", report.known, field::any("Phases that are remembered."));
  v("left", report.left, field::any("Phases that went on unlike what was remembered."));
  v("left_bytes", report.left_bytes,
    field::any("Bytes of messages that were sent as packets from the middle on, because of that."));
  v("judged", report.judged, field::any("Phases that were known, and simulated to be compared."));
  v("judged_messages", report.judged_messages, field::any("Their messages."));
  v("judged_bytes", report.judged_bytes, field::any("Bytes of these."));
  v("share", report.share,
    field::any("Part of the bytes of messages that are known that has to be simulated to be compared, at least; 0: the stretches "
               "alone."));
  v("stretches", report.stretches, field::any("Stretches of the run in which all that began was simulated, to be compared."));
  v("error", report.error, field::any("Mean of what their lengths differed by, over their mean length."));
  v("bias", report.bias, field::any("The same with its sign: positive where memory is too long."));
  v("worst", report.worst, field::any("Largest difference, as a part of its phase's length."));
  v("message_error", report.message_error,
    field::any("Mean of what the completion times of the messages that were compared differed by, over their mean."));
  v("message_p99", report.message_p99, field::any("99th percentile of the same of each, as a part of its own time."));
  v("contended", report.contended,
    field::any("Part of the time that messages took, in all, of those that were simulated and met messages of other flows."));
  v("judged_contended", report.judged_contended, field::any("How many of the phases that were compared were of several flows."));
  v("contended_error", report.contended_error, field::any("As error, of these alone."));
}

}  // namespace weir
