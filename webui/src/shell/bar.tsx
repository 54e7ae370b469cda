import { ChevronLeft, ChevronRight, CircleHelp, Monitor, Moon, Search, Sun } from "lucide-react";
import { Link } from "react-router";

import { IconButton } from "../ui/button";
import { moment } from "../parts/format";
import { usePlaceNow } from "../ui/place";
import { useAge } from "./age";
import { type Theme, useTheme } from "./look";

/** Whether the data shown is live, or since when it is old. */
function Live() {
  const { kind, since, why } = useAge();
  return (
    <span className={`live ${kind}`} role="status" data-tip={why || "Changes appear as they happen"}>
      <i aria-hidden="true" />
      {kind === "live"
        ? "Live"
        : kind === "stale"
          ? `Data of ${moment(since!.toISOString())}, catching up`
          : `Data of ${moment(since!.toISOString())}, reconnecting`}
    </span>
  );
}

const NEXT: Record<Theme, [Theme, string]> = {
  "": ["light", "as the system"],
  light: ["dark", "light"],
  dark: ["", "dark"],
};

function ThemeButton() {
  const [theme, setTheme] = useTheme();
  const [next, now] = NEXT[theme];
  return (
    <IconButton
      icon={theme === "light" ? <Sun /> : theme === "dark" ? <Moon /> : <Monitor />}
      label="Theme"
      tip={`Theme: ${now}. Press for ${NEXT[next][1]}`}
      onClick={() => setTheme(next)}
    />
  );
}

export function Bar({ onHelp, onSearch }: { onHelp: () => void; onSearch: () => void }) {
  const { crumbs } = usePlaceNow();
  const above = crumbs.at(-2);
  return (
    <div className="bar">
      <nav className="crumbs" aria-label="Breadcrumb">
        {above?.to && (
          <Link className="m-only up" to={above.to} aria-label={`Up to ${above.name}`}>
            <ChevronLeft />
          </Link>
        )}
        <ol>
          {crumbs.map((crumb, at) => (
            <li key={`${crumb.name} ${crumb.to}`}>
              {at > 0 && <ChevronRight className="s" />}
              {crumb.to && at < crumbs.length - 1 ? (
                <Link to={crumb.to} title={crumb.name}>
                  {crumb.name}
                </Link>
              ) : (
                <span className="here" aria-current={at === crumbs.length - 1 ? "page" : undefined} title={crumb.name}>
                  {crumb.name}
                </span>
              )}
            </li>
          ))}
        </ol>
      </nav>
      <div className="r">
        <Live />
        <span className="m-only">
          <IconButton icon={<Search />} label="Search or jump to" onClick={onSearch} />
        </span>
        <ThemeButton />
        <span className="d-only">
          <IconButton icon={<CircleHelp />} label="Keys" keys="?" onClick={onHelp} />
        </span>
      </div>
    </div>
  );
}
