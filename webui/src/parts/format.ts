/** Numbers, times and names in readable form. */

export const stateName = (state: string) => state.replace(/^STATE_/, "");

const TERMINAL = new Set(["COMPLETED", "CANCELED", "ERROR", "DELETED", "DELETE_FAILED"]);
export const isOver = (state: string) => TERMINAL.has(stateName(state));

/** What something that has not ended does instead. */
const UNENDED: Record<string, string> = { PAUSED: "only paused", QUEUED: "still waiting" };
export const unended = (state: string) => UNENDED[stateName(state)] ?? "still running";

// `toLocaleString` makes a formatter with each call, which lists of numbers would pay for.
const grouped = new Intl.NumberFormat("en");

/** With separators between thousands: `12,345`. */
export const count = (value: number) => grouped.format(value);

/** A count with what is counted: `1 line`, `12,345 lines`. */
export const many = (value: number, word: string) => `${count(value)} ${word}${value === 1 ? "" : "s"}`;

export function number(value: unknown, digits = 5): string {
  if (typeof value !== "number") return value === null || value === undefined ? "" : String(value);
  if (Number.isInteger(value) && Math.abs(value) < 1e9) return count(value);
  return Number(value.toPrecision(digits)).toString();
}

/** A fixed four significant digits, so that the numbers of a column align. */
export function digits(value: number): string {
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) return value.toExponential(2).replace("e+", "e");
  return size >= 1e4 ? Math.round(value).toLocaleString("en") : value.toPrecision(4);
}

/** A measured value of the API, which sends what JSON cannot express as `NaN`, `Infinity` and `-Infinity`. */
export const measured = (value: unknown) => (typeof value === "number" ? digits(value) : typeof value === "string" ? value : "");

/** A usually small amount: at most two decimals, and never 0 for a value above zero. */
export const little = (value: number) => (value > 0 && value < 0.01 ? "< 0.01" : number(Math.round(value * 100) / 100));

export function size(bytes: number | string): string {
  let left = Number(bytes);
  for (const unit of ["B", "kB", "MB", "GB"]) {
    if (left < 1024) return `${left < 10 && unit !== "B" ? left.toFixed(1) : Math.round(left)} ${unit}`;
    left /= 1024;
  }
  return `${left.toFixed(1)} TB`;
}

export function duration(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  if (!whole && seconds > 0) return "under 1 s";
  const parts: [number, string][] = [
    [Math.floor(whole / 86400), "d"],
    [Math.floor(whole / 3600) % 24, "h"],
    [Math.floor(whole / 60) % 60, "min"],
    [whole % 60, "s"],
  ];
  const from = Math.max(
    0,
    parts.findIndex(([count]) => count > 0),
  );
  const shown = whole ? parts.slice(from, from + 2) : parts.slice(3);
  return shown
    .filter(([count], at) => count > 0 || at === 0)
    .map(([count, unit]) => `${count} ${unit}`)
    .join(" ");
}

/** How long it ran; empty if it never did. Whole seconds alone would say that of what failed at once. */
export const ranFor = ({ runningTime, slotHours }: { runningTime: number; slotHours: number }) =>
  runningTime ? duration(runningTime) : slotHours > 0 ? "under 1 s" : "";

const MINUTE = 60;
/** In whole minutes, from one minute on. */
export const roughly = (seconds: number) => duration(seconds < MINUTE ? seconds : Math.round(seconds / MINUTE) * MINUTE);

export function ago(at: string): string {
  const seconds = (Date.now() - Date.parse(at)) / 1000;
  return seconds < 45 ? "just now" : `${duration(seconds).split(" ").slice(0, 2).join(" ")} ago`;
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sept", "Oct", "Nov", "Dec"];
const two = (value: number) => String(value).padStart(2, "0");

/** In the user's time zone, with a 24-hour clock. Put together here: a formatter takes ten times as long, in each row of a list. */
export function exact(at: string): string {
  const date = new Date(at);
  const day = `${date.getDate()} ${MONTHS[date.getMonth()]} ${date.getFullYear()}`;
  return `${day}, ${[date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(":")}`;
}

const hours = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const dayAndHours = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });

/** As short as possible: `14:50` today, `23 Nov, 02:10` on other days. */
export const clock = (at: number, now = Date.now()) =>
  (new Date(at).toDateString() === new Date(now).toDateString() ? hours : dayAndHours).format(at);

const withSeconds = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });
/** With seconds today: `14:50:03`; `23 Nov, 02:10` on other days. */
export const moment = (at: string, now = Date.now()) =>
  new Date(at).toDateString() === new Date(now).toDateString() ? withSeconds.format(new Date(at)) : clock(Date.parse(at), now);

/** `{a: {b: 1}}` -> `{"a.b": 1}` */
export function flat(value: Record<string, unknown>, above = ""): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, inner]) =>
      inner && typeof inner === "object" && !Array.isArray(inner)
        ? Object.entries(flat(inner as Record<string, unknown>, `${above}${name}.`))
        : [[`${above}${name}`, inner]],
    ),
  );
}

const PALETTE = ["#2f6fde", "#d9711c", "#2a9d6a", "#b3469c", "#a08c00", "#c23b3b", "#3a9fb8", "#7a5bd0"];
/** A trial has the same colour on every page. */
export const colour = (id: number) => PALETTE[id % PALETTE.length]!;

const ENDS = ["th", "st", "nd", "rd"];
/** Such as `1st`, `12th`, `1,023rd`. */
export function nth(place: number): string {
  const last = place % 100;
  return `${place.toLocaleString("en")}${ENDS[(last - 20) % 10] ?? ENDS[last] ?? ENDS[0]}`;
}

/** The state that pages show of an experiment: one whose pool can never hold it does not just wait. */
export const shownState = (record: { state: string; canStart?: boolean }) =>
  record.canStart === false && stateName(record.state) === "QUEUED" ? "CANNOT_START" : record.state;

/** Capitalizes the first letter of a sentence from a service. */
export const sentence = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

/** A sentence without its leading `user NAME`, for where that name stands beside it anyway. */
export const unnamed = (text: string, user: string) => {
  const lead = `user ${user} `;
  return user && text.startsWith(lead) ? text.slice(lead.length) : text;
};

/** A reason, unless it says only that the user logged in, which the sentence before it says already. */
export const because = (reason: string, user: string) => (reason === `${user} logged in` ? "" : reason);

/** The readable name of an actor: `ada`, `agent vm`, `trial 13`, or a service. */
export function actorName(actor: string): string {
  const [kind, ...rest] = actor.split(":");
  const who = rest.join(":");
  if (!who) return actor;
  return kind === "user" ? who : `${kind === "worker" ? "agent" : kind} ${who}`;
}
