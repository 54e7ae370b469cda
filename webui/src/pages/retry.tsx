/** Makes a service try again what it could not decide about or process. */

import { RotateCcw } from "lucide-react";

import { useMe } from "../api/data";
import { Button } from "../ui/button";
import { useAct } from "./settings/change";

export function Retry({ program, said }: { program: string; said: string }) {
  const me = useMe();
  const act = useAct();
  return (
    <Button
      small
      icon={<RotateCcw />}
      not={me.data?.user.admin ? undefined : "Only administrators can do this"}
      onClick={() => void act("POST", "master/parked/retry", { program }, said)}
    >
      Retry
    </Button>
  );
}
