/** Says why the libraries that C programs load are not beside the native core, and what would build them. */
import { existsSync } from "node:fs";

export const kVerbsHeader = "/usr/include/infiniband/verbs.h";

/**
 * @param libraries The folder where they would be: that of the native core.
 * @param exists Tells whether this host has a file.
 */
export function whyNotBuilt(libraries: string | undefined, exists: (path: string) => boolean = existsSync) {
  const remedy = "npm run build:native";
  // That folder is the one of node-gyp.
  if (libraries?.endsWith("/build/Release"))
    return {
      why: "where there is no cmake, only the native core is built",
      remedy: `apt install cmake, then ${remedy}`,
    };
  if (!exists(kVerbsHeader))
    return { why: "libibverbs' headers are not here", remedy: `apt install libibverbs-dev, then ${remedy}` };
  return {
    why: "libibverbs' headers are here, but no build has used them",
    remedy: `${remedy} builds them, or says what fails`,
  };
}
