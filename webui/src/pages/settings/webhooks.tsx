import { useQuery } from "@tanstack/react-query";
import { ListChecks, Send, Trash2, Webhook as Icon } from "lucide-react";
import { type FormEvent, useState } from "react";

import { question, useData } from "../../api/data";
import { useRights } from "../../api/rights";
import type { Webhook, WebhookDelivery } from "../../api/types";
import { number, sentence } from "../../parts/format";
import { Card } from "../../ui/card";
import { ask, Dialog, DialogFoot } from "../../ui/dialog";
import { Check, Select, TextField } from "../../ui/field";
import { stateWord } from "../../ui/state";
import { Empty, Loaded } from "../../ui/status";
import { type Column, Table } from "../../ui/table";
import { CopyButton, Cut, Tag, Time } from "../../ui/text";
import { useAct } from "./change";
import { Listing } from "./listing";

const STATES = ["COMPLETED", "ERROR", "CANCELED", "PAUSED", "ACTIVE"] as const;
const USUAL: readonly string[] = ["COMPLETED", "ERROR"];
const CHANGE = "TRIGGER_TYPE_EXPERIMENT_STATE_CHANGE";
/** Deliveries are attempted at any time without an event on the live channel, so the page polls. */
const FRESH_MS = 5000;

const kind = (webhook: Webhook) => (webhook.webhookType === "WEBHOOK_TYPE_SLACK" ? "Slack" : "JSON");
const states = (webhook: Webhook) => sentence(webhook.triggers.map((trigger) => stateWord(trigger.condition.state)).join(", "));

const COLUMNS: Column<Webhook>[] = [
  {
    id: "url",
    head: "Address",
    name: true,
    cell: (webhook) => <Cut title={webhook.url}>{webhook.url}</Cut>,
    value: (webhook) => webhook.url,
  },
  { id: "type", head: "Type", width: 80, cell: kind, value: kind },
  { id: "states", head: "Events", width: 220, cell: (webhook) => <Cut>{states(webhook)}</Cut>, value: states },
  {
    id: "waiting",
    head: "Waiting",
    width: 90,
    cell: (webhook) => (webhook.waiting ? number(webhook.waiting) : <span className="ink3">none</span>),
    value: (webhook) => webhook.waiting,
  },
];

/** Webhooks for state changes of experiments; for administrators, since addresses and keys are secrets. */
export function Webhooks() {
  const rights = useRights();
  if (!rights("administer_cluster")) return <All />;
  return (
    <Card title="Webhooks">
      <Empty icon={<Icon className="l" />} title="Only administrators see webhooks">
        Their addresses are secrets: anyone who knows one can post to it.
      </Empty>
    </Card>
  );
}

function All() {
  const answer = useData<{ webhooks: Webhook[] }>("webhooks", ["experiments"]);
  const [making, setMaking] = useState(false);
  const [looked, setLooked] = useState<Webhook | null>(null);
  const act = useAct();
  const remove = async (webhook: Webhook) => {
    const text = "Pending deliveries are dropped, and past deliveries are no longer shown.";
    if (await ask({ title: `Remove webhook ${webhook.id}?`, text, verb: "Remove" }))
      await act("DELETE", `webhooks/${webhook.id}`, {}, `Removed webhook ${webhook.id}`);
  };
  return (
    <>
      <Listing
        title="Webhooks"
        answer={answer}
        rows={({ webhooks }) => webhooks}
        make={{ verb: "New webhook", act: () => setMaking(true) }}
        empty={{
          icon: <Icon className="l" />,
          title: "No webhooks",
          command: "det webhook create URL",
          children: "A webhook tells another program, or a channel of Slack, when an experiment completes or fails.",
        }}
        id={(webhook) => String(webhook.id)}
        called={(webhook) => `webhook ${webhook.id}`}
        columns={COLUMNS}
        actions={(webhook) => [
          { name: "Deliveries", icon: <ListChecks />, act: () => setLooked(webhook) },
          { name: "Test", icon: <Send />, act: () => void act("POST", `webhooks/${webhook.id}/test`, {}, "The test was delivered") },
          { name: "Remove", icon: <Trash2 />, danger: true, act: () => void remove(webhook) },
        ]}
      />
      {making && <NewWebhook onClose={() => setMaking(false)} />}
      {looked && <Deliveries hook={looked} onClose={() => setLooked(null)} />}
    </>
  );
}

function NewWebhook({ onClose }: { onClose: () => void }) {
  const act = useAct();
  const [type, setType] = useState("DEFAULT");
  const [chosen, setChosen] = useState(USUAL);
  const save = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const body = {
      url: form.get("url"),
      webhookType: `WEBHOOK_TYPE_${type}`,
      signingKey: form.get("key") ?? "",
      triggers: chosen.map((state) => ({ triggerType: CHANGE, condition: { state } })),
    };
    if (await act("POST", "webhooks", body, "Created a webhook")) onClose();
  };
  return (
    <Dialog title="New webhook" onClose={onClose}>
      <form onSubmit={(event) => void save(event)}>
        <TextField label="Address" name="url" type="url" required placeholder="https://" maxLength={2048} />
        <Select
          above
          label="Type"
          value={type}
          options={[
            ["DEFAULT", "Signed JSON"],
            ["SLACK", "Message for Slack"],
          ]}
          onChange={setType}
        />
        <fieldset className="fld ticks">
          <legend className="lbl">Told when an experiment is</legend>
          {STATES.map((state) => (
            <Check
              key={state}
              label={sentence(stateWord(state))}
              checked={chosen.includes(state)}
              onChange={(on) => setChosen(on ? [...chosen, state] : chosen.filter((other) => other !== state))}
            />
          ))}
        </fieldset>
        {type === "DEFAULT" && (
          <TextField
            label="Signing key"
            name="key"
            maxLength={256}
            hint="The receiver uses it to verify signatures. Leave empty to generate one."
          />
        )}
        <DialogFoot onClose={onClose} disabled={!chosen.length}>
          Create webhook
        </DialogFoot>
      </form>
    </Dialog>
  );
}

const RESULTS: Record<string, string> = { WAITING: "waits", DELIVERED: "arrived", GIVEN_UP: "given up" };
const DELIVERIES: Column<WebhookDelivery>[] = [
  {
    id: "of",
    head: "Of",
    name: true,
    cell: (delivery) => (
      <Cut>{delivery.experimentId ? `experiment ${delivery.experimentId}: ${stateWord(delivery.experimentState)}` : "a test"}</Cut>
    ),
  },
  { id: "time", head: "Since", width: 110, cell: (delivery) => <Time at={delivery.time} /> },
  {
    id: "state",
    head: "Result",
    small: true,
    width: 100,
    cell: (delivery) => <Tag kind={delivery.state === "GIVEN_UP" ? "bad" : ""}>{RESULTS[delivery.state] ?? delivery.state}</Tag>,
  },
  { id: "attempts", head: "Attempts", width: 90, cell: (delivery) => number(delivery.attempts.length) },
  {
    id: "last",
    head: "Last answer",
    width: 260,
    cell: (delivery) => {
      const last = delivery.attempts.at(-1);
      return <Cut title={delivery.reason}>{last ? last.problem || String(last.status) : "none yet"}</Cut>;
    },
  },
];

function Deliveries({ hook, onClose }: { hook: Webhook; onClose: () => void }) {
  const path = `webhooks/${hook.id}/deliveries`;
  const answer = useQuery({ ...question<{ deliveries: WebhookDelivery[] }>(path), refetchInterval: FRESH_MS });
  return (
    <Dialog wide title={`Deliveries of webhook ${hook.id}`} text={hook.url} onClose={onClose}>
      <div className="deliveries">
        {hook.webhookType === "WEBHOOK_TYPE_DEFAULT" && hook.signingKey && (
          <p className="secret">
            Signing key <code>{hook.signingKey}</code>
            <CopyButton text={hook.signingKey} label="Copy the signing key" />
          </p>
        )}
        <Loaded answer={answer}>
          {({ deliveries }) =>
            deliveries.length ? (
              <Table name="Deliveries" rows={deliveries} id={(delivery) => delivery.id} columns={DELIVERIES} />
            ) : (
              <Empty title="Nothing yet">None of this webhook's events has happened.</Empty>
            )
          }
        </Loaded>
      </div>
    </Dialog>
  );
}
