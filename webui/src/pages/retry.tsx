/** Makes a service try again what it could not decide about or process. */

import { RotateCcw } from "lucide-react";

import { useRights } from "../api/rights";
import { Button } from "../ui/button";
import { useAct } from "./settings/change";

export function Retry({ program, confirmation }: { program: string; confirmation: string }) {
  const not = useRights()("administer_cluster");
  const act = useAct();
  return (
    <Button small icon={<RotateCcw />} not={not} onClick={() => void act("POST", "master/parked/retry", { program }, confirmation)}>
      Retry
    </Button>
  );
}
