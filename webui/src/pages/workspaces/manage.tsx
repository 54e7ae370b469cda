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
  pathOf: (one: T) => string;
  /** How much it holds. */
  held: (one: T) => number;
  /** Why the user may not edit it. */
  notEdit: (one: T) => string;
  /** Why the user may not archive or delete it. */
  notControl: (one: T) => string;
}

/** Rename, archive, delete: the same for workspaces and projects. */
export function useManage<T extends Kept>({ pathOf, held, notEdit, notControl }: Managed<T>) {
  const [editing, setEditing] = useState<T | null>(null);
  const act = useAct();
  const remove = async (one: T) => {
    const text = "Move its contents elsewhere first.";
    if (await ask({ title: `Delete ${one.name}?`, text, verb: "Delete", danger: true }))
      await act("DELETE", pathOf(one), {}, `Deleted ${one.name}`);
  };
  const items = (one: T): MenuItems => {
    const stays = one.immutable ? "stays as it is" : "";
    const verb = one.archived ? "unarchive" : "archive";
    return [
      { name: "Edit", icon: <Pencil />, not: stays || notEdit(one), act: () => setEditing(one) },
      {
        name: one.archived ? "Unarchive" : "Archive",
        icon: one.archived ? <ArchiveRestore /> : <Archive />,
        not: stays || notControl(one),
        act: () => void act("POST", `${pathOf(one)}/${verb}`, {}, `${one.archived ? "Unarchived" : "Archived"} ${one.name}`),
      },
      {
        name: "Delete",
        icon: <Trash2 />,
        danger: true,
        not: stays || (held(one) ? "holds experiments" : notControl(one)),
        act: () => void remove(one),
      },
    ];
  };
  return { items, editing, stop: () => setEditing(null) };
}

export function Edit({ one, path, described, onClose }: { one: Kept; path: string; described?: string; onClose: () => void }) {
  const act = useAct();
  const save = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    if (await act("PATCH", path, Object.fromEntries(new FormData(event.currentTarget)), `Saved ${one.name}`)) onClose();
  };
  return (
    <Dialog title={`Edit ${one.name}`} onClose={onClose}>
      <form onSubmit={(event) => void save(event)}>
        <TextField label="Name" name="name" defaultValue={one.name} required maxLength={80} />
        {described !== undefined && <TextField label="Description" name="description" defaultValue={described} />}
        <DialogFoot onClose={onClose}>Save</DialogFoot>
      </form>
    </Dialog>
  );
}
