import { Suspense, useCallback, useEffect, useRef, useState } from "react";
import { Link, NavLink, Outlet, useLocation, useNavigate } from "react-router";

import { ApiError, get } from "../api/client";
import { useChange, useData, useMe } from "../api/data";
import { useLost } from "../api/live";
import type { Experiment } from "../api/types";
import { isTyping } from "./keys";

const PLACES: [string, string, string][] = [
  ["/dashboard", "Dashboard", "d"],
  ["/experiments", "Experiments", "e"],
  ["/workspaces", "Workspaces", "w"],
  ["/models", "Models", "m"],
  ["/jobs", "Job queue", "q"],
  ["/clusters", "Cluster", "c"],
  ["/tasks", "Tasks", "t"],
];

/** `g` and a letter go to a place, `/` to the search field, `?` shows all keys. */
function useKeys(help: () => void) {
  const navigate = useNavigate();
  // The page may change between the two keys.
  const before = useRef("");
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (isTyping(event)) return;
      const place = before.current === "g" && PLACES.find(([, , key]) => key === event.key);
      if (place) {
        navigate(place[0]);
        // The same key must not also act on a list.
        event.stopImmediatePropagation();
      } else if (event.key === "/") {
        const search = document.querySelector<HTMLInputElement>("input[type=search]");
        if (search) {
          event.preventDefault();
          search.focus();
        }
      } else if (event.key === "[") void neighbour(-1).then((to) => to && navigate(to));
      else if (event.key === "]") void neighbour(1).then((to) => to && navigate(to));
      else if (event.key === "?") help();
      before.current = event.key;
    };
    document.addEventListener("keydown", onKey, { capture: true });
    return () => document.removeEventListener("keydown", onKey, { capture: true });
  }, [navigate, help]);
}

/** The same page of the trial before or after the one that is looked at, if there is one. */
async function neighbour(by: number): Promise<string | null> {
  const [, experiment, trial, rest] = /\/experiments\/(\d+)\/trials\/(\d+)(.*)/.exec(location.pathname) ?? [];
  if (!trial) return null;
  const { experiment: above } = await get<{ experiment: Experiment }>(`experiments/${experiment}`);
  const ids = [...above.trialIds].sort((a, b) => a - b);
  const next = ids[ids.indexOf(Number(trial)) + by];
  return next ? `/experiments/${experiment}/trials/${next}${rest}` : null;
}

const KEYS: [string, string][] = [
  ...PLACES.map(([, name, key]): [string, string] => [`g ${key}`, name]),
  ["/", "to the search field"],
  ["j  k", "next and previous row of a list"],
  ["x", "choose the row"],
  ["Enter", "open what is focused"],
  ["c", "compare what is chosen"],
  ["p", "pause or activate the row"],
  [".", "actions of the row"],
  ["[  ]", "previous and next trial"],
  ["?", "this list"],
];

export const KeyTable = () => (
  <table aria-label="Keys">
    <tbody>
      {KEYS.map(([key, words]) => (
        <tr key={key}>
          <th scope="row">
            <kbd>{key}</kbd>
          </th>
          <td>{words}</td>
        </tr>
      ))}
    </tbody>
  </table>
);

function Help({ open, onClose }: { open: boolean; onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (open) dialog.current?.showModal();
    else dialog.current?.close();
  }, [open]);
  return (
    <dialog ref={dialog} onClose={onClose} aria-labelledby="help-title">
      <h2 id="help-title">Keys</h2>
      {open && <KeyTable />}
      <menu>
        <button type="button" onClick={onClose}>
          Close
        </button>
      </menu>
    </dialog>
  );
}

export function useTheme(): [string, (theme: string) => void] {
  const [theme, setTheme] = useState(() => localStorage.getItem("theme") ?? "");
  useEffect(() => {
    document.documentElement.style.colorScheme = theme || "light dark";
    if (theme) localStorage.setItem("theme", theme);
    else localStorage.removeItem("theme");
  }, [theme]);
  return [theme, setTheme];
}

const INSIDE = "signed in";

/** How close rows stand, per user of this browser. */
export function useDensity(): [string, (density: string) => void] {
  const [density, setDensity] = useState(() => localStorage.getItem("density") ?? "roomy");
  useEffect(() => {
    document.documentElement.dataset.density = density;
    localStorage.setItem("density", density);
  }, [density]);
  return [density, setDensity];
}

export function Layout() {
  const me = useMe();
  const info = useData<{ clusterName: string }>("master");
  const navigate = useNavigate();
  const here = useLocation();
  const lost = useLost();
  const leave = useChange(() => {
    sessionStorage.removeItem(INSIDE);
    navigate("/login");
  });
  const [helping, setHelping] = useState(false);
  const help = useCallback(() => setHelping(true), []);
  useKeys(help);
  useDensity();
  useTheme();
  const stranger = me.error instanceof ApiError && me.error.status === 401;
  useEffect(() => {
    if (!stranger) return;
    const ended = sessionStorage.getItem(INSIDE) ? "Your session has ended. Sign in to go on where you were." : undefined;
    sessionStorage.removeItem(INSIDE);
    navigate("/login", { state: { from: here.pathname + here.search, ended }, replace: true });
  }, [stranger, navigate, here.pathname, here.search]);
  const inside = Boolean(me.data) && !stranger;
  useEffect(() => {
    if (inside) sessionStorage.setItem(INSIDE, "1");
  }, [inside]);
  if (!me.data) return <div className="skeleton" role="status" aria-label="Loading" />;
  return (
    <>
      <a className="skip" href="#main">
        Skip to content
      </a>
      <header className="top">
        <Link to="/dashboard" className="brand">
          Steadfast
        </Link>
        <nav aria-label="Places">
          {PLACES.map(([path, name, key]) => (
            <NavLink key={path} to={path} title={`g ${key}`}>
              {name}
            </NavLink>
          ))}
        </nav>
        <span className="soft">{info.data?.clusterName}</span>
        {lost && (
          <span className="lost" role="status">
            reconnecting, data of {lost.toLocaleTimeString()}
          </span>
        )}
        <button type="button" className="more" aria-label="Keys" title="Keys: ?" onClick={help}>
          ?
        </button>
        <Link to="/settings">{me.data.user.username}</Link>
        <button type="button" onClick={() => leave.mutate({ method: "POST", path: "auth/logout" })}>
          Sign out
        </button>
      </header>
      <Help open={helping} onClose={() => setHelping(false)} />
      <main id="main">
        <Suspense fallback={<div className="skeleton" role="status" aria-label="Loading" />}>
          <Outlet />
        </Suspense>
      </main>
    </>
  );
}
