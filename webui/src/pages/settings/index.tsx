import { Gauge, KeyRound, Keyboard, MonitorSmartphone, Palette, User as Person, Users as People, UsersRound, Webhook } from "lucide-react";
import type { ReactNode } from "react";
import { Link, useParams } from "react-router";

import { useMe } from "../../api/data";
import type { User } from "../../api/types";
import { Missing } from "../../shell/missing";
import { useCurrentInView } from "../../ui/into_view";
import { PageHead, usePlace } from "../../ui/page";
import { Loaded } from "../../ui/status";
import { Sessions, Tokens } from "./access";
import { KeySettings, Look } from "./look";
import { Profile } from "./profile";
import { Groups } from "./groups";
import { Quotas } from "./quotas";
import { Users } from "./users";
import { Webhooks } from "./webhooks";
import "./settings.css";

interface Part {
  id: string;
  name: string;
  icon: ReactNode;
  show: (user: User) => ReactNode;
}

const PARTS: Part[] = [
  { id: "profile", name: "Profile", icon: <Person />, show: (user) => <Profile user={user} /> },
  { id: "appearance", name: "Appearance", icon: <Palette />, show: () => <Look /> },
  { id: "keys", name: "Keys", icon: <Keyboard />, show: () => <KeySettings /> },
  { id: "sessions", name: "Sessions", icon: <MonitorSmartphone />, show: (user) => <Sessions user={user.id} /> },
  { id: "tokens", name: "API tokens", icon: <KeyRound />, show: () => <Tokens /> },
  { id: "users", name: "Users", icon: <People />, show: () => <Users /> },
  { id: "groups", name: "Groups", icon: <UsersRound />, show: () => <Groups /> },
  { id: "quotas", name: "Quotas", icon: <Gauge />, show: () => <Quotas /> },
  { id: "webhooks", name: "Webhooks", icon: <Webhook />, show: () => <Webhooks /> },
];

export function Settings() {
  const wanted = useParams().part ?? "profile";
  const part = PARTS.find((part) => part.id === wanted);
  return part ? <Chosen part={part} /> : <Missing />;
}

function Chosen({ part }: { part: Part }) {
  const me = useMe();
  const box = useCurrentInView<HTMLElement>(part.id);
  usePlace({ crumbs: [{ name: "Settings", to: "/settings" }, { name: part.name }] });
  return (
    <>
      <PageHead title="Settings" beside={part.name} />
      <div className="settings">
        <nav ref={box} aria-label="Parts of the settings">
          {PARTS.map((section) => (
            <Link key={section.id} className="nav" to={`/settings/${section.id}`} aria-current={section === part ? "page" : undefined}>
              {section.icon}
              <span>{section.name}</span>
            </Link>
          ))}
        </nav>
        <div className="stack">
          <Loaded answer={me}>{({ user }) => part.show(user)}</Loaded>
        </div>
      </div>
    </>
  );
}
