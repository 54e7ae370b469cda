import { useQueryClient } from "@tanstack/react-query";
import { Ban, CirclePlay, Timer } from "lucide-react";
import { createElement } from "react";

import { send } from "../../api/client";
import { useRights } from "../../api/rights";
import type { Agent } from "../../api/types";
import { ask } from "../../ui/dialog";
import type { MenuItems } from "../../ui/menu";
import { failed, toast } from "../../ui/toast";
import { isBusy, slotsOf } from "./facts";

/** Actions on agents and slots, with their availability and messages. */
export function useSwitches() {
  const client = useQueryClient();
  const not = useRights()("administer_cluster");
  const put = async (path: string, verb: string, body: object | undefined, done: string) => {
    try {
      await send("POST", `${path}/${verb}`, body);
      toast({ text: done });
    } catch (error) {
      failed(error);
    }
    void client.invalidateQueries();
  };
  const disable = async (agent: Agent) => {
    const busy = slotsOf(agent).filter(isBusy).length;
    const text = `Tasks on ${busy} of its slots stop immediately and restart elsewhere. Drain lets them finish first.`;
    if (busy && !(await ask({ title: `Disable ${agent.id}?`, text, verb: "Disable", danger: true }))) return;
    await put(`agents/${agent.id}`, "disable", undefined, `Disabled ${agent.id}`);
  };
  const items = (agent: Agent): MenuItems => [
    {
      name: "Drain",
      icon: createElement(Timer),
      not: not || (agent.enabled ? "" : "is off already"),
      act: () => void put(`agents/${agent.id}`, "disable", { drain: true }, `${agent.id} is draining: running tasks finish first`),
    },
    {
      name: "Enable",
      icon: createElement(CirclePlay),
      not: not || (agent.enabled ? "is enabled" : ""),
      act: () => void put(`agents/${agent.id}`, "enable", undefined, `Enabled ${agent.id}`),
    },
    null,
    {
      name: "Disable now",
      icon: createElement(Ban),
      danger: true,
      not: not || (agent.enabled || agent.draining ? "" : "is disabled"),
      act: () => void disable(agent),
    },
  ];
  return { put, items, not };
}
