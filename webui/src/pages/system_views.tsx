import { useNavigate } from "react-router";

import { Views } from "../ui/tabs";

const PATHS: Record<string, string> = { events: "/system/events", audit: "/system/audit", health: "/system/events?view=health" };

/** Switches between what operators read: all events, what people did, and how the platform is. */
export function SystemViews({ value }: { value: "events" | "audit" | "health" }) {
  const navigate = useNavigate();
  return (
    <Views
      name="Views"
      value={value}
      views={[
        { id: "events", name: "Events" },
        { id: "audit", name: "Audit" },
        { id: "health", name: "Health" },
      ]}
      onChange={(id) => navigate(PATHS[id]!)}
    />
  );
}
