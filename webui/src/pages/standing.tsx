/** Services that stand still at an event they cannot process, and the decision to skip it. */

import { FastForward } from "lucide-react";
import { useState } from "react";

import { useRights } from "../api/rights";
import { exact } from "../parts/format";
import { Button } from "../ui/button";
import { Card } from "../ui/card";
import { Dialog, DialogFoot } from "../ui/dialog";
import { TextField } from "../ui/field";
import { type Column, Table } from "../ui/table";
import { Cut } from "../ui/text";
import { Retry } from "./retry";
import { useAct } from "./settings/change";

export interface Standing {
  program: string;
  stream: string;
  position: number;
  subject: string;
  error: string;
  since: string;
}

const COLUMNS: Column<Standing>[] = [
  { id: "program", head: "Service", name: true, cell: (standing) => standing.program, value: (standing) => standing.program },
  {
    id: "position",
    head: "At event",
    width: 130,
    cell: (standing) => `${standing.position.toLocaleString("en")} of ${standing.stream}`,
    value: (standing) => standing.position,
  },
  { id: "subject", head: "Subject", width: 220, cell: (standing) => <Cut>{standing.subject}</Cut>, value: (standing) => standing.subject },
  { id: "error", head: "Error", width: 250, wrap: true, cell: (standing) => standing.error },
  { id: "since", head: "Since", width: 170, cell: (standing) => exact(standing.since), value: (standing) => standing.since },
];

export function StandingServices({ rows }: { rows: Standing[] }) {
  return (
    <Card title="Services that stand still" count={rows.length} more="each at an event that it cannot process" flush>
      <Table
        name="Services that stand still"
        rows={rows}
        id={(standing) => `${standing.program} ${standing.stream} ${standing.position}`}
        columns={COLUMNS}
        actWidth={190}
        act={(standing) => (
          <>
            <Retry program={standing.program} confirmation={`The ${standing.program} tries event ${standing.position} again`} />{" "}
            <Skip of={standing} />
          </>
        )}
      />
    </Card>
  );
}

function Skip({ of }: { of: Standing }) {
  const not = useRights()("administer_cluster");
  const [open, setOpen] = useState(false);
  return (
    <>
      <Button small kind="danger" icon={<FastForward />} not={not} onClick={() => setOpen(true)}>
        Skip
      </Button>
      {open && <SkipForm of={of} onClose={() => setOpen(false)} />}
    </>
  );
}

function SkipForm({ of, onClose }: { of: Standing; onClose: () => void }) {
  const act = useAct();
  const [reason, setReason] = useState("");
  const skip = async () => {
    const request = { program: of.program, stream: of.stream, position: of.position, reason };
    const confirmation = `The ${of.program} skips event ${of.position} and continues`;
    if (await act("POST", "master/parked/skip", request, confirmation)) onClose();
  };
  return (
    <Dialog
      title={`Skip event ${of.position} of ${of.stream}?`}
      text={
        `The ${of.program} will never process this event (${of.subject}). Whatever the event changes is lost for this ` +
        "service, and later events that depend on it may fail too. The event stays in the log, and other services keep " +
        "its effects. This cannot be undone: a rebuilt database skips the event as well. If a release can process the " +
        "event, run that release instead."
      }
      onClose={onClose}
    >
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void skip();
        }}
      >
        <TextField label="Reason" value={reason} onChange={setReason} hint="for the audit: why the event may be skipped" required />
        <DialogFoot onClose={onClose}>Skip the event</DialogFoot>
      </form>
    </Dialog>
  );
}
