import { useEffect, useState } from "react";

import { useData } from "../../api/data";
import { clock } from "../../parts/format";
import { field } from "../../lists/query";
import { StateIcon } from "../../ui/state";
import { type Found, search } from ".";

const KEY = "was here";
const AWAY_MS = 30 * 60_000;
const DAY_MS = 24 * 3_600_000;
const REST_MS = 5000;

/** The user's last visit in this browser, before the latest longer absence; a day ago for a first visit. */
function lastVisit(): Date {
  const now = Date.now();
  const { from = now - DAY_MS, seen = now } = JSON.parse(localStorage.getItem(KEY) ?? "{}");
  const since = now - seen > AWAY_MS ? seen : from;
  localStorage.setItem(KEY, JSON.stringify({ from: since, seen: now }));
  return new Date(since);
}

/** What ended and what failed since the last visit. */
export function Since({ user }: { user: string }) {
  const [since] = useState(lastVisit);
  useEffect(() => {
    const timer = setInterval(lastVisit, AWAY_MS / 6);
    return () => clearInterval(timer);
  }, []);
  const after = [field("endTime", ">", since.toISOString()), field("user", "=", user)];
  const ended = useData<Found>(
    user ? search([...after, field("state", "=", "COMPLETED")], "endTime=desc", 1) : null,
    ["experiments"],
    true,
    REST_MS,
  );
  const failed = useData<Found>(
    user ? search([...after, field("state", "=", "ERROR")], "endTime=desc", 1) : null,
    ["experiments"],
    true,
    REST_MS,
  );
  const [done, lost] = [ended.data?.pagination.total ?? 0, failed.data?.pagination.total ?? 0];
  return (
    <span className="since">
      {done + lost > 0 ? (
        <span>Since {clock(since.getTime())}:</span>
      ) : (
        <span>None of your experiments has ended since {clock(since.getTime())}.</span>
      )}
      {done > 0 && (
        <span>
          <StateIcon state="COMPLETED" /> {done} of your experiments ended
        </span>
      )}
      {lost > 0 && (
        <span>
          <StateIcon state="ERROR" /> {lost} failed
        </span>
      )}
    </span>
  );
}
