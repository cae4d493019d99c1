/** Time that tests wait before they give up. Nothing is expected to come near, however busy the machine is. */

/** Time for one thing that comes at last; ms. */
export const kPatienceMs = 120_000;
/** Time for one test or hook; ms. */
export const kTestLimitMs = 300_000;
