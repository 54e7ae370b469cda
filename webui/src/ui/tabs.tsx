/** Tabs of a page, each with its own address, and views of a list. */

import type { ReactNode } from "react";
import { NavLink, useLocation, useNavigate } from "react-router";

import { useCurrentInView } from "./into_view";
import { useKey } from "./keys";

export interface Tab {
  path: string;
  name: string;
  count?: number | string;
}

/** The keys 1 to 9 select a tab. */
export function Tabs({ base, tabs, label = "Parts" }: { base: string; tabs: Tab[]; label?: string }) {
  const navigate = useNavigate();
  const box = useCurrentInView<HTMLElement>(useLocation().pathname);
  useKey(Object.fromEntries(tabs.slice(0, 9).map((tab, at) => [String(at + 1), () => navigate(`${base}/${tab.path}`)])));
  return (
    <nav ref={box} className="tabs" aria-label={label}>
      {tabs.map((tab, at) => (
        <NavLink key={tab.path} to={`${base}/${tab.path}`} data-tip={at < 9 ? tab.name : undefined} data-keys={String(at + 1)}>
          {tab.name}
          {tab.count !== undefined && <span className="n"> {tab.count}</span>}
        </NavLink>
      ))}
    </nav>
  );
}

export interface View {
  id: string;
  name: string;
  count?: number;
  icon?: ReactNode;
}

/** Switches between the views of a list. */
export function Views({ name, value, views, onChange }: { name: string; value: string; views: View[]; onChange: (id: string) => void }) {
  const box = useCurrentInView<HTMLDivElement>(value);
  return (
    <div ref={box} className="tabs" role="group" aria-label={name}>
      {views.map((view) => (
        <button key={view.id} type="button" aria-pressed={view.id === value} onClick={() => onChange(view.id)}>
          {view.name}
          {view.icon}
          {view.count !== undefined && <span className="n">{view.count.toLocaleString("en")}</span>}
        </button>
      ))}
    </div>
  );
}
