import { PencilLine } from "lucide-react";
import { type FormEvent, useState } from "react";

import { useChange } from "../../api/data";
import { useRights } from "../../api/rights";
import type { Experiment } from "../../api/types";
import { Markdown } from "../../parts/markdown";
import { Button } from "../../ui/button";
import { Card } from "../../ui/card";
import { TextArea, TextField } from "../../ui/field";
import { Empty, Failure } from "../../ui/status";
import { toast } from "../../ui/toast";

const rowsOf = (text: string) => Math.min(Math.max(text.split("\n").length + 2, 10), 30);

/** Everything that people write about an experiment. */
export function Notes({ experiment }: { experiment: Experiment }) {
  const rights = useRights();
  const [writing, setWriting] = useState(false);
  const change = useChange(() => {
    setWriting(false);
    toast({ text: "Saved." });
  });
  const save = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const labels = String(form.get("labels"))
      .split(",")
      .map((label) => label.trim())
      .filter(Boolean);
    const body = { name: form.get("name"), description: form.get("description"), notes: form.get("notes"), labels };
    change.mutate({ method: "PATCH", path: `experiments/${experiment.id}`, body });
  };
  if (!writing)
    return (
      <Card
        title="Notes"
        more={
          <Button small icon={<PencilLine />} not={rights("edit", experiment)} onClick={() => setWriting(true)}>
            Edit
          </Button>
        }
      >
        {experiment.notes ? (
          <Markdown text={experiment.notes} />
        ) : (
          <Empty icon={<PencilLine className="l" />}>No notes yet. What did you want to find out?</Empty>
        )}
      </Card>
    );
  return (
    <Card title="Notes">
      <form className="form" onSubmit={save}>
        <TextField label="Name" name="name" defaultValue={experiment.name} required />
        <TextField label="Description" name="description" defaultValue={experiment.description} />
        <TextField label="Tags" hint="with commas between them" name="labels" defaultValue={experiment.labels.join(", ")} />
        <TextArea
          label="Notes"
          hint="Markdown; HTML is shown as text"
          name="notes"
          rows={rowsOf(experiment.notes)}
          defaultValue={experiment.notes}
        />
        <div className="foot">
          <Button kind="primary" type="submit" disabled={change.isPending}>
            Save
          </Button>
          <Button kind="ghost" onClick={() => setWriting(false)}>
            Cancel
          </Button>
        </div>
        {change.error ? <Failure error={change.error} /> : null}
      </form>
    </Card>
  );
}
