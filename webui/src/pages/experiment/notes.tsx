import { type FormEvent, useState } from "react";

import { useChange } from "../../api/data";
import type { Experiment } from "../../api/types";
import { Card, Failure } from "../../parts/basics";
import { Markdown } from "../../parts/markdown";

/** Everything that people write about an experiment. */
export function Notes({ one }: { one: Experiment }) {
  const [done, setDone] = useState("");
  const change = useChange(() => setDone("Saved."));
  const save = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const labels = String(form.get("labels"))
      .split(",")
      .map((label) => label.trim())
      .filter(Boolean);
    const body = { name: form.get("name"), description: form.get("description"), notes: form.get("notes"), labels };
    change.mutate({ method: "PATCH", path: `experiments/${one.id}`, body });
  };
  return (
    <Card>
      {one.notes && <Markdown text={one.notes} />}
      <form className="form" onSubmit={save}>
        <label>
          Name
          <input name="name" defaultValue={one.name} />
        </label>
        <label>
          Description
          <input name="description" defaultValue={one.description} />
        </label>
        <label>
          Labels, with commas
          <input name="labels" defaultValue={one.labels.join(", ")} />
        </label>
        <label>
          Notes, in Markdown
          <textarea name="notes" rows={12} defaultValue={one.notes} />
        </label>
        <button type="submit" className="main">
          Save
        </button>{" "}
        <span role="status">{done}</span>
        {change.error ? <Failure error={change.error} /> : null}
      </form>
    </Card>
  );
}
