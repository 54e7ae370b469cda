import { useEffect, useRef, useState } from "react";
import { useNavigate } from "react-router";

import { useChange } from "../../api/data";
import type { Experiment } from "../../api/types";
import { Failure } from "../../parts/basics";

/** A new experiment from this one's configuration and code. */
export function Fork({ one, onClose }: { one: Experiment; onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [config, setConfig] = useState(one.originalConfig);
  const navigate = useNavigate();
  const fork = useChange((answer) => {
    onClose();
    navigate(`/experiments/${answer.experiment.id}/overview`);
  });
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} onClose={onClose} className="wide-dialog" aria-labelledby="fork-title">
      <h2 id="fork-title">Fork experiment {one.id}</h2>
      <label>
        Configuration
        <textarea rows={22} spellCheck={false} value={config} onChange={(event) => setConfig(event.target.value)} />
      </label>
      {fork.error ? <Failure error={fork.error} /> : null}
      <menu>
        <button type="button" onClick={onClose}>
          Close
        </button>
        <button
          type="button"
          className="main"
          disabled={fork.isPending}
          onClick={() => fork.mutate({ method: "POST", path: "experiments", body: { config, parentId: one.id, activate: true } })}
        >
          Submit
        </button>
      </menu>
    </dialog>
  );
}
