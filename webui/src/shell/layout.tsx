import { useIsFetching } from "@tanstack/react-query";
import { Search } from "lucide-react";
import { lazy, Suspense, useCallback, useEffect, useRef, useState } from "react";
import { Link, Outlet, useLocation, useNavigate } from "react-router";

import { ApiError } from "../api/client";
import { useChange, useData, useMe } from "../api/data";
import { fetchedPart } from "../api/fetched";
import { ALL, isThere } from "../places";
import { near, part } from "../ui/heavy";
import { onWanted } from "../ui/host";
import { Loading } from "../ui/status";
import { useLinksWithin } from "../ui/within";
import { Bar } from "./bar";
import { Fault } from "./fault";
import { Help } from "./help";
import { useKeys } from "./keys";
import { useDensity, useFolded, useTheme } from "./look";
import { Side } from "./side";
import { TypedAhead } from "./typed_ahead";
import "./shell.css";

const Host = part((from) => from.Host);
const Palette = lazy(async () => ({ default: (await fetchedPart(() => import("./palette"))).Palette }));
const INSIDE = "signed in";
const PATIENCE_MS = 3000;

/** Calls `onRest` once the page shows what it first asked for and the browser is idle. To be mounted beside the page. */
function Rest({ onRest }: { onRest: () => void }) {
  const asked = useIsFetching({ predicate: ({ state }) => state.status === "pending" });
  useEffect(() => {
    if (asked) return;
    if (!window.requestIdleCallback) return onRest();
    const idle = window.requestIdleCallback(onRest, { timeout: PATIENCE_MS });
    return () => window.cancelIdleCallback(idle);
  }, [asked, onRest]);
  return null;
}

/** Redirects users who are not signed in to the sign-in page, and back afterwards. */
function useInside() {
  const me = useMe();
  const navigate = useNavigate();
  const here = useLocation();
  const stranger = me.error instanceof ApiError && me.error.status === 401;
  useEffect(() => {
    if (!stranger) return;
    const ended = sessionStorage.getItem(INSIDE) ? "Your session has expired. Sign in to continue where you were." : undefined;
    sessionStorage.removeItem(INSIDE);
    navigate("/login", { state: { from: here.pathname + here.search, ended }, replace: true });
  }, [stranger, navigate, here.pathname, here.search]);
  const inside = Boolean(me.data) && !stranger;
  useEffect(() => {
    if (inside) sessionStorage.setItem(INSIDE, "1");
  }, [inside]);
  return me.data?.user;
}

function Dock({ onSearch }: { onSearch: () => void }) {
  const { pathname } = useLocation();
  return (
    <nav className="dock" aria-label="Main places">
      {ALL.filter((to) => to.dock).map((to) => (
        <Link key={to.path} to={to.path} aria-current={isThere(to, pathname) ? "page" : undefined}>
          {to.icon}
          {to.dock}
        </Link>
      ))}
      <button type="button" onClick={onSearch} onPointerEnter={near}>
        <Search />
        Search
      </button>
    </nav>
  );
}

export function Layout() {
  const user = useInside();
  const info = useData<{ clusterName: string }>("master");
  const navigate = useNavigate();
  const { pathname } = useLocation();
  const [folded] = useFolded();
  const leave = useChange(() => {
    sessionStorage.removeItem(INSIDE);
    navigate("/login");
  });
  const [helping, setHelping] = useState(false);
  const [looking, setLooking] = useState(false);
  const help = useCallback(() => setHelping(true), []);
  const typed = useRef("");
  const look = useCallback(() => {
    typed.current = "";
    setLooking(true);
  }, []);
  const leaveSearch = useCallback(() => setLooking(false), []);
  useKeys(help, look);
  useDensity();
  useTheme();
  useLinksWithin();
  // Toasts, questions and tooltips: fetched after the page, or as soon as one is needed.
  const [hosts, setHosts] = useState(false);
  const host = useCallback(() => setHosts(true), []);
  useEffect(() => onWanted(host), [host]);
  if (!user) return <Loading shape="page" />;
  return (
    <div className={`app ${folded}`}>
      <a className="skip" href="#main">
        Skip to content
      </a>
      <Side
        user={user}
        cluster={info.data?.clusterName}
        onSearch={look}
        onLeave={() => leave.mutate({ method: "POST", path: "auth/logout" })}
      />
      <div className="main">
        <Bar onHelp={help} onSearch={look} />
        <main id="main" className="content">
          <Fault key={pathname.split("/").slice(0, 3).join("/")}>
            <Suspense fallback={<Loading shape="page" />}>
              <Outlet />
              {!hosts && <Rest onRest={host} />}
            </Suspense>
          </Fault>
        </main>
      </div>
      <Dock onSearch={look} />
      {helping && <Help onClose={() => setHelping(false)} />}
      <Fault>
        <Suspense fallback={<TypedAhead typed={typed} onGiveUp={leaveSearch} />}>
          {looking && <Palette typed={typed} onClose={leaveSearch} />}
        </Suspense>
        <Suspense>{hosts && <Host />}</Suspense>
      </Fault>
    </div>
  );
}
