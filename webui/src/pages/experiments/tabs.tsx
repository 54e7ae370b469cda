/** The standing and the saved views of the list, with how many experiments each finds. */

import { keepPreviousData, useQueries } from "@tanstack/react-query";
import { Star } from "lucide-react";
import { useNavigate } from "react-router";

import { question, useAgain, useMe } from "../../api/data";
import { type SavedView, savedViews, standing } from "../../lists/views";
import { Views } from "../../ui/tabs";
import type { Found } from "./rows";
import { askedFor, type ListView } from "./view";

const COUNT_REST_MS = 4000;

/** How many experiments views find; null for one that is not counted, or cannot be. */
function useCounts(project: number, views: { q: string; archived?: boolean; counted?: boolean }[]): (number | undefined)[] {
  const paths = views.map((one) =>
    one.counted ? (askedFor({ text: one.q, archived: Boolean(one.archived), sorts: [] }, project, [])?.(0, 1) ?? null) : null,
  );
  const found = useQueries({
    queries: paths.map((path) => ({
      ...question<Found>(path ?? ""),
      enabled: path !== null,
      staleTime: COUNT_REST_MS,
      placeholderData: keepPreviousData,
    })),
  });
  useAgain(
    ["experiments"],
    paths.filter((path) => path !== null).map((path) => [path]),
    COUNT_REST_MS,
  );
  return found.map((one) => one.data?.pagination.total);
}

/** What a saved view finds, from its address. */
function asView({ search }: SavedView) {
  const params = new URLSearchParams(search);
  return { q: params.get("q") ?? "", archived: params.has("a"), counted: true };
}

export function Tabs({ view, project }: { view: ListView; project: number }) {
  const me = useMe();
  const navigate = useNavigate();
  const saved = savedViews();
  const there = standing(me.data?.user.username ?? "");
  const counts = useCounts(project, [...there.map((one) => ({ ...one, counted: one.counted && Boolean(me.data) })), ...saved.map(asView)]);
  const named = view.params.get("v");
  const now = named ? `saved ${named}` : (there.find((one) => one.q === view.text && Boolean(one.archived) === view.archived)?.id ?? "");
  return (
    <Views
      name="Views"
      value={now}
      views={[...there, ...saved.map((one) => ({ id: `saved ${one.name}`, name: one.name, icon: <Star className="s" /> }))].map(
        (one, at) => ({
          ...one,
          count: counts[at] || undefined,
        }),
      )}
      onChange={(id) => {
        const own = saved.find((one) => `saved ${one.name}` === id);
        if (own) return navigate(`?${own.search}`, { replace: true });
        const one = there.find((other) => other.id === id)!;
        view.set({ q: one.q, a: one.archived ? "1" : "", v: "" });
      }}
    />
  );
}
