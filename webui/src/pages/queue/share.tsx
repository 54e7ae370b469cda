import type { Job } from "../../api/types";
import { Dialog, DialogFoot } from "../../ui/dialog";
import { NumberField } from "../../ui/field";
import { called } from "./facts";

const HINTS = { priority: "1 is first, 99 is last.", weight: "Its share of the pool, relative to the weights of other jobs." };

export function SetShare({
  job,
  what,
  onSet,
  onClose,
}: {
  job: Job;
  what: "priority" | "weight";
  onSet: (value: number) => void;
  onClose: () => void;
}) {
  const label = what === "priority" ? "Priority" : "Weight";
  return (
    <Dialog title={`${label} of ${called(job)}`} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          onSet(Number(new FormData(event.currentTarget).get("value")));
        }}
      >
        <NumberField
          label={label}
          name="value"
          defaultValue={String(job[what])}
          hint={HINTS[what]}
          min={what === "priority" ? 1 : 0.01}
          max={what === "priority" ? 99 : undefined}
          step={what === "priority" ? 1 : "any"}
          required
        />
        <DialogFoot onClose={onClose}>Set the {what}</DialogFoot>
      </form>
    </Dialog>
  );
}
