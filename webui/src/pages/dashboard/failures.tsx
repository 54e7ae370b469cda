import { useQueries } from "@tanstack/react-query";
import { ArrowRight, Check, ChevronDown } from "lucide-react";
import { Fragment, useState } from "react";
import { Link } from "react-router";

import { ApiError, get, stream } from "../../api/client";
import { useData } from "../../api/data";
import type { Experiment, LogLine, Trial } from "../../api/types";
import { useExperimentMenu } from "../../lists/acts";
import { MoveDialog } from "../../lists/move";
import { field, type Node } from "../../lists/query";
import { sentence } from "../../parts/format";
import { failedRanks, ranksOf } from "../../parts/logs/ranks";
import { Button, LinkButton } from "../../ui/button";
import { Card } from "../../ui/card";
import { Menu } from "../../ui/menu";
import { StateIcon } from "../../ui/state";
import { Cut, Tag, Time } from "../../ui/text";
import { type Found, search } from ".";

const HOUR_MS = 3_600_000;
const REST_MS = 1000;
const MOST = 10;
/** Number of causes shown at first, so that the running experiments below stay in view. */
const SHOWN = 3;
const NAMED = 6;
const SEEN = "failures seen";
const TELLING = /error|exception|critical|fatal|killed|out of memory/i;

interface Cause {
  rankId: number | null;
  agentId: string | null;
  /** The problem in plain words; empty if unknown. */
  words: string;
  said: { log: string };
  ranks: { rankId: number | null; failedTimestamp: string | null }[];
}

/** Whether these words say more than the log line itself. */
const isSaid = ({ words, said: line }: Cause) => words !== "" && !line.log.includes(words);

/** Experiments that failed at the same line, the most recent first. */
interface Group {
  all: Experiment[];
  cause?: Told;
}

/** One group per failure line; experiments whose cause is not known yet are groups of their own. */
function together(failed: Experiment[], causes: (Told | null | undefined)[]): Group[] {
  const groups = new Map<string, Group>();
  failed.forEach((experiment, at) => {
    const cause = causes[at] ?? undefined;
    const key = cause?.text || `experiment ${experiment.id}`;
    groups.set(key, { all: [...(groups.get(key)?.all ?? []), experiment], cause: groups.get(key)?.cause ?? cause });
  });
  return [...groups.values()];
}

/** The failures of the last day: each cause once, with the log line that explains it. */
export function Failures({ own }: { own: Node[] }) {
  const since = new Date(Math.floor(Date.now() / HOUR_MS) * HOUR_MS - 24 * HOUR_MS).toISOString();
  const [seen, setSeen] = useState(() => Number(localStorage.getItem(SEEN) ?? 0));
  const failed = useData<Found>(
    search([...own, field("state", "=", "ERROR"), field("endTime", ">", since)], "endTime=desc", MOST),
    ["experiments"],
    true,
    REST_MS,
  );
  const { items, moving, stopMoving } = useExperimentMenu();
  const shown = failed.data?.experiments.filter(({ experiment }) => Date.parse(experiment.endTime ?? "") > seen) ?? [];
  const [whole, setWhole] = useState(false);
  const causes = useQueries({
    queries: shown.map(({ experiment: { id, endTime } }) => ({
      queryKey: ["last error", id, endTime],
      queryFn: () => explain(id),
      staleTime: Number.POSITIVE_INFINITY,
    })),
  });
  if (!shown.length) return null;
  const groups = together(
    shown.map((row) => row.experiment),
    causes.map((cause) => cause.data),
  );
  const rest = whole ? 0 : Math.max(0, groups.length - SHOWN);
  const total = failed.data?.pagination.total ?? 0;
  const mark = () => {
    const now = Date.now();
    localStorage.setItem(SEEN, String(now));
    setSeen(now);
  };
  return (
    <Card
      title={
        <>
          Failed in the last day <Tag kind="bad">{String(total)}</Tag>
        </>
      }
      label="Failed in the last day"
      flush
      more={
        <Button small kind="ghost" icon={<Check />} onClick={mark}>
          Mark all as seen
        </Button>
      }
    >
      <ul className="failures">
        {groups.slice(0, groups.length - rest).map((group) => (
          <Failed
            key={group.all[0]!.id}
            group={group}
            menu={<Menu label={`Actions of experiment ${group.all[0]!.id}`} items={items(group.all[0]!)} />}
          />
        ))}
      </ul>
      {rest > 0 && (
        <div className="rest">
          <Button small kind="ghost" icon={<ChevronDown />} onClick={() => setWhole(true)}>
            {rest === 1 ? "1 more cause" : `${rest} more causes`}
          </Button>
        </div>
      )}
      {moving && <MoveDialog ids={[moving.id]} from={moving.projectId} onClose={stopMoving} />}
    </Card>
  );
}

interface Told {
  trial: number;
  text: string;
  /** Who failed first. */
  who: string;
  many: number;
}

/**
 * Asks the gateway who failed first; an older gateway cannot say, so the fallback is the last log line that mentions an
 * error.
 */
async function explain(id: number): Promise<Told | null> {
  const { trials, pagination } = await get<{ trials: Trial[]; pagination: { total: number } }>(
    `experiments/${id}/trials?states=STATE_ERROR&limit=1`,
  );
  const trial = trials[0];
  if (!trial) return null;
  const many = pagination?.total ?? 1;
  try {
    const { cause } = await get<{ cause: Cause | null }>(`trials/${trial.id}/logs/cause`);
    if (cause) {
      const rank = cause.rankId === null ? "" : `rank ${cause.rankId}: `;
      const [fell, all] = [failedRanks(cause.ranks), ranksOf(cause.ranks).length];
      const first = fell > 1 ? `First of ${fell} ranks to fail` : all > 1 ? `One of ${all} ranks failed` : "It failed";
      const who = `${first}${cause.agentId ? ` on ${cause.agentId}` : ""}${isSaid(cause) ? `: ${cause.words}` : ""}`;
      return { trial: trial.id, text: `${rank}${cause.said.log}`, who, many };
    }
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 404) throw error;
  }
  const lines: LogLine[] = [];
  for await (const page of stream<LogLine>(`trials/${trial.id}/logs?limit=50&orderBy=ORDER_BY_DESC`, new AbortController().signal))
    lines.push(...page);
  const texts = lines.map((line) => line.log.trim()).filter(Boolean);
  return { trial: trial.id, text: texts.find((text) => TELLING.test(text)) ?? texts[0] ?? "", who: "", many };
}

const MOST_TEXT = 300;

function Failed({ group, menu }: { group: Group; menu: React.ReactNode }) {
  const [experiment, ...same] = group.all as [Experiment, ...Experiment[]];
  const cause = group.cause;
  const to = cause ? `/experiments/${experiment.id}/trials/${cause.trial}/logs` : `/experiments/${experiment.id}/logs`;
  const others = cause && cause.many > 1 ? `${cause.many} trials failed` : "";
  const summary = [cause?.who, others || sentence(experiment.stateReason.replace(/^all trials failed$/, ""))].filter(Boolean).join(". ");
  return (
    <li>
      <StateIcon state="ERROR" />
      <div>
        <div className="l1">
          <Link className="b cut" to={`/experiments/${experiment.id}/overview`} title={experiment.name}>
            {experiment.name}
          </Link>
          <span className="id">
            {experiment.id}
            {cause && ` · trial ${cause.trial}`}
          </span>
          <span className="ink3 sm nowrap">
            {experiment.username}, <Time at={experiment.endTime} />
          </span>
        </div>
        {cause?.text && (
          <div className="why mono" title={cause.text.slice(0, MOST_TEXT)}>
            {cause.text.slice(0, MOST_TEXT)}
          </div>
        )}
        <div className="sm ink3 told">
          {summary && <Cut>{summary}</Cut>}
          {same.length > 0 && <Same all={same} />}
        </div>
      </div>
      <span className="do">
        <LinkButton small to={to} icon={<ArrowRight />}>
          Open log at the cause
        </LinkButton>
        {menu}
      </span>
    </li>
  );
}

/** The other experiments that failed at the same line. */
function Same({ all }: { all: Experiment[] }) {
  const more = all.length - NAMED;
  return (
    <span>
      {all.length === 1 ? "One more" : `${all.length} more`} failed at the same line:{" "}
      {all.slice(0, NAMED).map((experiment, at) => (
        <Fragment key={experiment.id}>
          {at > 0 && ", "}
          <Link className="link" to={`/experiments/${experiment.id}/overview`} title={experiment.name}>
            {experiment.id}
          </Link>
        </Fragment>
      ))}
      {more > 0 && ` and ${more} more`}
    </span>
  );
}
