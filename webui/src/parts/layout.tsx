import { Suspense, useEffect, useState } from "react";
import { Link, NavLink, Outlet, useLocation, useNavigate } from "react-router";

import { ApiError } from "../api/client";
import { useChange, useData } from "../api/data";
import { useLost } from "../api/live";

const PLACES: [string, string, string][] = [
  ["/dashboard", "Dashboard", "d"],
  ["/experiments", "Experiments", "e"],
  ["/models", "Models", "m"],
  ["/jobs", "Job queue", "q"],
  ["/clusters", "Cluster", "c"],
  ["/tasks", "Tasks", "t"],
];

/** `g` and a letter go to a place. */
function useKeys() {
  const navigate = useNavigate();
  useEffect(() => {
    let before = "";
    const onKey = (event: KeyboardEvent) => {
      const element = event.target as HTMLElement;
      if (event.ctrlKey || event.metaKey || event.altKey || /INPUT|SELECT|TEXTAREA/.test(element.tagName)) return;
      const place = before === "g" && PLACES.find(([, , key]) => key === event.key);
      if (place) navigate(place[0]);
      if (event.key === "/") {
        const search = document.querySelector<HTMLInputElement>("input[type=search]");
        if (search) {
          event.preventDefault();
          search.focus();
        }
      }
      before = event.key;
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, [navigate]);
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

export function Layout() {
  const me = useData<{ user: { username: string } }>("me", ["users"]);
  const info = useData<{ clusterName: string }>("master");
  const navigate = useNavigate();
  const here = useLocation();
  const lost = useLost();
  const leave = useChange(() => navigate("/login"));
  useKeys();
  useTheme();
  const stranger = me.error instanceof ApiError && me.error.status === 401;
  useEffect(() => {
    if (stranger) navigate("/login", { state: { from: here.pathname + here.search }, replace: true });
  }, [stranger, navigate, here.pathname, here.search]);
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
        <Link to="/settings">{me.data.user.username}</Link>
        <button type="button" onClick={() => leave.mutate({ method: "POST", path: "auth/logout" })}>
          Sign out
        </button>
      </header>
      <main id="main">
        <Suspense fallback={<div className="skeleton" role="status" aria-label="Loading" />}>
          <Outlet />
        </Suspense>
      </main>
    </>
  );
}
