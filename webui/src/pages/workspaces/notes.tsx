import { Trash2 } from "lucide-react";
import type { FormEvent } from "react";

import { useRights } from "../../api/rights";
import { Markdown } from "../../parts/markdown";
import { Button, IconButton } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { TextArea, TextField } from "../../ui/field";
import { useAct } from "../settings/change";
import type { Project } from ".";

export function ProjectNotes({ project, onClose }: { project: Project; onClose: () => void }) {
  const act = useAct();
  const not = useRights()("edit_project", project);
  const put = (notes: Project["notes"], done: string) => act("PUT", `projects/${project.id}/notes`, { notes }, done);
  const add = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = event.currentTarget;
    const fields = new FormData(form);
    if (await put([...project.notes, { name: String(fields.get("name")), contents: String(fields.get("contents")) }], "Added the note"))
      form.reset();
  };
  return (
    <Dialog title={`Notes of ${project.name}`} wide onClose={onClose}>
      <div className="stack" style={{ maxHeight: "45vh", overflow: "auto" }}>
        {project.notes.map((note, at) => (
          <article key={at} className="prose">
            <h3 className="check">
              {note.name}
              <IconButton
                icon={<Trash2 />}
                label={`Remove ${note.name}`}
                not={not}
                onClick={() =>
                  void put(
                    project.notes.filter((_, other) => other !== at),
                    "Removed the note",
                  )
                }
              />
            </h3>
            <Markdown text={note.contents} />
          </article>
        ))}
      </div>
      <form onSubmit={(event) => void add(event)}>
        <TextField label="Title" name="name" required />
        <TextArea label="Note" name="contents" rows={3} />
        <div className="dialog-foot">
          <Button onClick={onClose}>Close</Button>
          <Button type="submit" kind="primary" not={not}>
            Add note
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
