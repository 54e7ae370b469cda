import { Archive, ArchiveRestore, Pencil, Trash2 } from "lucide-react";
import { type FormEvent, useState } from "react";
import { useNavigate } from "react-router";

import { useRights } from "../../api/rights";
import { ask, Dialog, DialogFoot } from "../../ui/dialog";
import { TextArea, TextField } from "../../ui/field";
import type { MenuItems } from "../../ui/menu";
import { useAct } from "../settings/change";
import { type Model, pathOf, type Version, words } from "./facts";
import { many } from "../../parts/format";

export function useModelMenu() {
  const [editing, setEditing] = useState<Model | null>(null);
  const act = useAct();
  const rights = useRights();
  const navigate = useNavigate();
  const remove = async (model: Model) => {
    const text = model.numVersions
      ? `Deletes ${many(model.numVersions, "version")}, too; retention decides how long their checkpoints are kept.`
      : "It has no versions.";
    if (!(await ask({ title: `Delete model ${model.name}?`, text, verb: "Delete", danger: true }))) return;
    if (await act("DELETE", pathOf(model.name), {}, `Deleted ${model.name}`)) navigate("/models");
  };
  const items = (model: Model): MenuItems => [
    { name: "Edit", icon: <Pencil />, not: rights("edit", model), act: () => setEditing(model) },
    {
      name: model.archived ? "Unarchive" : "Archive",
      icon: model.archived ? <ArchiveRestore /> : <Archive />,
      not: rights("control", model),
      act: () =>
        void act(
          "POST",
          `${pathOf(model.name)}/${model.archived ? "unarchive" : "archive"}`,
          {},
          `${model.archived ? "Unarchived" : "Archived"} ${model.name}`,
        ),
    },
    null,
    { name: "Delete", icon: <Trash2 />, danger: true, not: rights("delete", model), act: () => void remove(model) },
  ];
  return { items, editing, stop: () => setEditing(null) };
}

export function EditModel({ model, path, onClose }: { model: Model; path: string; onClose: () => void }) {
  const act = useAct();
  const navigate = useNavigate();
  const save = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const name = String(form.get("name"));
    const body = { name, description: form.get("description"), notes: form.get("notes"), labels: words(form.get("labels")) };
    if (!(await act("PATCH", path, body, `Saved ${name}`))) return;
    onClose();
    if (name !== model.name) navigate(`/models/${encodeURIComponent(name)}`, { replace: true });
  };
  return (
    <Dialog title={`Edit ${model.name}`} onClose={onClose}>
      <form onSubmit={(event) => void save(event)}>
        <TextField label="Name" name="name" defaultValue={model.name} required />
        <TextField label="Description" name="description" defaultValue={model.description} />
        <TextField label="Tags" name="labels" hint="Separated by commas." defaultValue={model.labels.join(", ")} />
        <TextArea label="Notes" name="notes" rows={5} defaultValue={model.notes} />
        <DialogFoot onClose={onClose}>Save</DialogFoot>
      </form>
    </Dialog>
  );
}

export function EditVersion({ path, version, onClose }: { path: string; version: Version; onClose: () => void }) {
  const act = useAct();
  const save = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const body = { name: form.get("name"), comment: form.get("comment"), notes: form.get("notes"), labels: words(form.get("labels")) };
    if (await act("PATCH", `${path}/versions/${version.version}`, body, `Saved version ${version.version}`)) onClose();
  };
  return (
    <Dialog title={`Edit version ${version.version}`} onClose={onClose}>
      <form onSubmit={(event) => void save(event)}>
        <TextField label="Name" name="name" defaultValue={version.name} />
        <TextField label="Comment" name="comment" defaultValue={version.comment} />
        <TextField
          label="Tags"
          name="labels"
          hint="Separated by commas, such as production, candidate."
          defaultValue={(version.labels ?? []).join(", ")}
        />
        <TextArea label="Notes" name="notes" rows={3} defaultValue={version.notes} />
        <DialogFoot onClose={onClose}>Save</DialogFoot>
      </form>
    </Dialog>
  );
}
