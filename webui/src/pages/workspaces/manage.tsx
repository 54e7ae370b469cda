import { Archive, ArchiveRestore, Pencil, Trash2 } from "lucide-react";
import { type FormEvent, useState } from "react";

import { ask, Dialog, DialogFoot } from "../../ui/dialog";
import { TextField } from "../../ui/field";
import type { MenuItems } from "../../ui/menu";
import { useAct } from "../settings/change";

export interface Kept {
  id: number;
  name: string;
  archived: boolean;
  immutable: boolean;
}

interface Managed<T> {
  pathOf: (record: T) => string;
  /** How much it holds. */
  held: (record: T) => number;
  /** Why the user may not edit it. */
  notEdit: (record: T) => string;
  /** Why the user may not archive or delete it. */
  notControl: (record: T) => string;
}

/** Rename, archive, delete: the same for workspaces and projects. */
export function useManage<T extends Kept>({ pathOf, held, notEdit, notControl }: Managed<T>) {
  const [editing, setEditing] = useState<T | null>(null);
  const act = useAct();
  const remove = async (record: T) => {
    const text = "Move its contents elsewhere first.";
    if (await ask({ title: `Delete ${record.name}?`, text, verb: "Delete", danger: true }))
      await act("DELETE", pathOf(record), {}, `Deleted ${record.name}`);
  };
  const items = (record: T): MenuItems => {
    const stays = record.immutable ? "stays as it is" : "";
    const verb = record.archived ? "unarchive" : "archive";
    return [
      { name: "Edit", icon: <Pencil />, not: stays || notEdit(record), act: () => setEditing(record) },
      {
        name: record.archived ? "Unarchive" : "Archive",
        icon: record.archived ? <ArchiveRestore /> : <Archive />,
        not: stays || notControl(record),
        act: () => void act("POST", `${pathOf(record)}/${verb}`, {}, `${record.archived ? "Unarchived" : "Archived"} ${record.name}`),
      },
      {
        name: "Delete",
        icon: <Trash2 />,
        danger: true,
        not: stays || (held(record) ? "holds experiments" : notControl(record)),
        act: () => void remove(record),
      },
    ];
  };
  return { items, editing, stop: () => setEditing(null) };
}

export function Edit({ record, path, described, onClose }: { record: Kept; path: string; described?: string; onClose: () => void }) {
  const act = useAct();
  const save = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    if (await act("PATCH", path, Object.fromEntries(new FormData(event.currentTarget)), `Saved ${record.name}`)) onClose();
  };
  return (
    <Dialog title={`Edit ${record.name}`} onClose={onClose}>
      <form onSubmit={(event) => void save(event)}>
        <TextField label="Name" name="name" defaultValue={record.name} required maxLength={80} />
        {described !== undefined && <TextField label="Description" name="description" defaultValue={described} />}
        <DialogFoot onClose={onClose}>Save</DialogFoot>
      </form>
    </Dialog>
  );
}
