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
  useKey(Object.fromEntries(tabs.slice(0, 9).map((one, at) => [String(at + 1), () => navigate(`${base}/${one.path}`)])));
  return (
    <nav ref={box} className="tabs" aria-label={label}>
      {tabs.map((one, at) => (
        <NavLink key={one.path} to={`${base}/${one.path}`} data-tip={at < 9 ? one.name : undefined} data-keys={String(at + 1)}>
          {one.name}
          {one.count !== undefined && <span className="n"> {one.count}</span>}
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
      {views.map((one) => (
        <button key={one.id} type="button" aria-pressed={one.id === value} onClick={() => onChange(one.id)}>
          {one.name}
          {one.icon}
          {one.count !== undefined && <span className="n">{one.count.toLocaleString("en")}</span>}
        </button>
      ))}
    </div>
  );
}
