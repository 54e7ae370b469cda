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
  const paths = views.map((view) =>
    view.counted ? (askedFor({ text: view.q, archived: Boolean(view.archived), sorts: [] }, project, [])?.(0, 1) ?? null) : null,
  );
  const answer = useQueries({
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
  return answer.map((answer) => answer.data?.pagination.total);
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
  const counts = useCounts(project, [
    ...there.map((standing) => ({ ...standing, counted: standing.counted && Boolean(me.data) })),
    ...saved.map(asView),
  ]);
  const named = view.params.get("v");
  const now = named
    ? `saved ${named}`
    : (there.find((standing) => standing.q === view.text && Boolean(standing.archived) === view.archived)?.id ?? "");
  return (
    <Views
      name="Views"
      value={now}
      views={[
        ...there,
        ...saved.map((savedView) => ({ id: `saved ${savedView.name}`, name: savedView.name, icon: <Star className="s" /> })),
      ].map((view, at) => ({
        ...view,
        count: counts[at] || undefined,
      }))}
      onChange={(id) => {
        const own = saved.find((savedView) => `saved ${savedView.name}` === id);
        if (own) return navigate(`?${own.search}`, { replace: true });
        const standing = there.find((other) => other.id === id)!;
        view.set({ q: standing.q, a: standing.archived ? "1" : "", v: "" });
      }}
    />
  );
}
