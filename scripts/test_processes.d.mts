export const kTestRun: string;
export function processesWith(variable: string, value: string): { pid: number; command: string }[];
