/** Imported before all schemas: zod must not try to make code from text, which the page's policy forbids. */
import { config } from "zod";

config({ jitless: true });
