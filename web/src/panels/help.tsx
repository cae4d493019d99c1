/** Shows the keys of the page. */
import { useEffect, useRef } from "preact/hooks";
import { kKeys } from "../keys.js";
import { helpOpen } from "./help_open.js";

export function Help() {
  const dialog = useRef<HTMLDialogElement>(null);
  const open = helpOpen.value;
  useEffect(() => {
    if (open) dialog.current?.showModal();
    else dialog.current?.close();
  }, [open]);
  return (
    <dialog
      ref={dialog}
      id="help"
      aria-label="Keys"
      onClose={() => {
        helpOpen.value = false;
      }}
    >
      <h2>Keys</h2>
      <dl>
        {kKeys.map(({ shown, does }) => (
          <div key={shown}>
            <dt>
              <kbd>{shown}</kbd>
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
      <p class="soft">In charts: drag to zoom, double click for all. In the topology: click, or Enter, to inspect.</p>
      <form method="dialog">
        <button type="submit">Close</button>
      </form>
    </dialog>
  );
}
