// The time stamp counter, which programs in virtual time are to have as theirs.
#pragma once

namespace weir {

// Whether reading it can be trapped here (prctl(2), PR_SET_TSC): some virtual machines' hypervisors read it all the same, and
// processors other than x86-64 have another. It asks in a child process. Throws NativeError where there is none.
bool traps_ticks();

}  // namespace weir
