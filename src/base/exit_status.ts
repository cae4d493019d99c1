/** Exit statuses of weir; a signal's is 128 + its number. `permanent` tells a scheduler not to try again. */
export const kExit = {
  ok: 0,
  failure: 1,
  usage: 2,
  invalid: 3,
  unexpected: 4,
  permanent: 42,
  sigint: 130,
  sigterm: 143,
} as const;
