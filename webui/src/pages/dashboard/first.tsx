/** What to do on a cluster on which nothing has run yet. */

import { FlaskConical } from "lucide-react";

import { Copyable } from "../../ui/text";

const STEPS = (origin: string) => [
  {
    name: "Point the command line at this cluster",
    command: `export DET_MASTER=${origin}`,
    hint: "In the shell where you work; det user whoami says whether it is reached.",
  },
  {
    name: "Submit an experiment",
    command: "det experiment create 1_metrics.yaml .",
    hint: "From the folder examples/core_api, whose experiments take seconds, or from your own. New experiment does the same in the browser.",
  },
  {
    name: "Watch it here",
    command: "det experiment list",
    hint: "Its charts, logs and checkpoints are on its page from its first report on.",
  },
];

export const FirstSteps = () => (
  <div className="first-steps">
    <div className="first-head">
      <FlaskConical className="l" />
      <div>
        <b className="b">Run your first experiment</b>
        <p className="ink2 sm">Nothing has run on this cluster yet. Three steps, and it stands here.</p>
      </div>
    </div>
    <ol>
      {STEPS(location.origin).map(({ name, command, hint }) => (
        <li key={name}>
          <b className="m">{name}</b>
          <Copyable text={command} />
          <p className="ink3 sm">{hint}</p>
        </li>
      ))}
    </ol>
  </div>
);
