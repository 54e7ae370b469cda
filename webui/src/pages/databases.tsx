/** The databases that can be rebuilt from the log or a copy, and how far running rebuilds are. */

import { DatabaseBackup } from "lucide-react";

import { useData } from "../api/data";
import { useRights } from "../api/rights";
import { Button } from "../ui/button";
import { Card } from "../ui/card";
import { ask } from "../ui/dialog";
import { type Column, Table } from "../ui/table";
import { useAct } from "./settings/change";

interface Rebuildable {
  program: string;
  /** How far the rebuild is; empty if none is running. */
  progress: string;
  /** Why it refused to be rebuilt; empty if it did not. */
  refused: string;
}

const COLUMNS: Column<Rebuildable>[] = [
  {
    id: "program",
    head: "Service",
    width: 160,
    name: true,
    cell: (rebuildable) => rebuildable.program,
    value: (rebuildable) => rebuildable.program,
  },
  {
    id: "progress",
    head: "Rebuild",
    width: 420,
    wrap: true,
    cell: (rebuildable) => rebuildable.progress || (rebuildable.refused ? `refused: ${rebuildable.refused}` : "none under way"),
  },
];

export function Databases() {
  const answer = useData<{ programs: Rebuildable[] }>("master/rebuild", ["cluster"], true);
  const rows = answer.data?.programs ?? [];
  return (
    <Card title="Databases" more="each can be rebuilt" flush>
      <Table
        name="Databases"
        rows={rows}
        id={(rebuildable) => rebuildable.program}
        columns={COLUMNS}
        actWidth={110}
        act={(rebuildable) => <Rebuild of={rebuildable} />}
      />
    </Card>
  );
}

function Rebuild({ of }: { of: Rebuildable }) {
  const not = useRights()("administer_cluster");
  const act = useAct();
  const rebuild = async () => {
    const itself = of.program === "gateway" ? " This page does not answer until then, either." : "";
    const fromCopy = of.program.startsWith("metrics");
    const way = fromCopy ? "fills its database again from the newest copy" : "starts again with an empty database and folds the whole log";
    const sure = await ask({
      title: `Rebuild the database of the ${of.program}?`,
      text:
        `The ${of.program} ${way}, which takes from seconds to minutes. ` +
        `Until it is done, it decides and answers nothing. Scripts keep training, and nothing is lost.${itself}`,
      verb: "Rebuild",
    });
    if (sure) await act("POST", "master/rebuild", { program: of.program }, `The ${of.program} rebuilds its database`);
  };
  return (
    <Button small icon={<DatabaseBackup />} not={of.progress ? "A rebuild is running" : not} onClick={() => void rebuild()}>
      Rebuild
    </Button>
  );
}
