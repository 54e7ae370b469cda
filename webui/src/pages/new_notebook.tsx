/** Starts JupyterLab: with how many slots, where, and after how much idle time it stops. */

import { useQueryClient } from "@tanstack/react-query";
import { NotebookPen } from "lucide-react";
import { useState } from "react";

import { send } from "../api/client";
import { ANYWHERE, useRights } from "../api/rights";
import { Button } from "../ui/button";
import { Dialog, DialogFoot } from "../ui/dialog";
import { TextField } from "../ui/field";
import { failed, toast } from "../ui/toast";

export function NewNotebook() {
  const [open, setOpen] = useState(false);
  const not = useRights()("create_task", ANYWHERE);
  return (
    <>
      <Button icon={<NotebookPen />} not={not} onClick={() => setOpen(true)}>
        New notebook
      </Button>
      {open && <Form onClose={() => setOpen(false)} />}
    </>
  );
}

function Form({ onClose }: { onClose: () => void }) {
  const client = useQueryClient();
  const [name, setName] = useState("");
  const [slots, setSlots] = useState("1");
  const [pool, setPool] = useState("");
  const [idle, setIdle] = useState("2h");
  const [busy, setBusy] = useState(false);
  const start = async () => {
    setBusy(true);
    try {
      const resources = { slots: Number(slots), ...(pool && { resource_pool: pool }) };
      const config = { resources, ...(name && { description: name }), ...(idle && { idle_timeout: idle }) };
      await send("POST", "notebooks", { config });
      toast({ text: "The notebook is starting. Its row shows Open when it is ready" });
      onClose();
    } catch (error) {
      failed(error, "New notebook");
      setBusy(false);
    }
    void client.invalidateQueries();
  };
  return (
    <Dialog title="New notebook" text="Runs JupyterLab on a worker, in the Python environment of the experiments." onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void start();
        }}
      >
        <TextField label="Name" value={name} onChange={setName} placeholder="Notebook" />
        <TextField label="Slots" type="number" min={0} value={slots} onChange={setSlots} required />
        <TextField label="Pool" value={pool} onChange={setPool} placeholder="default" />
        <TextField label="Ends when idle for" value={idle} onChange={setIdle} hint="such as 30m or 2h; empty: runs until killed" />
        <DialogFoot onClose={onClose} disabled={busy}>
          Start
        </DialogFoot>
      </form>
    </Dialog>
  );
}
