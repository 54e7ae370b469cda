import { useParams, Link } from "react-router";

import { useData } from "../api/data";
import { Card, Copyable, Empty, Loaded, Time } from "../parts/basics";

interface Model {
  id: number;
  name: string;
  description: string;
  labels: string[];
  numVersions: number;
  username: string;
  lastUpdatedTime: string;
  archived: boolean;
}
interface Version {
  version: number;
  name: string;
  comment: string;
  creationTime: string;
  username: string;
  checkpoint: { uuid: string; training: { experimentId: number; trialId: number } | null };
}

export function Models() {
  const found = useData<{ models: Model[] }>("models", ["models"]);
  return (
    <>
      <h1>Models</h1>
      <Card>
        <Loaded found={found}>
          {({ models }) =>
            models.length ? (
              <table>
                <thead>
                  <tr>
                    <th>Name</th>
                    <th>Description</th>
                    <th className="num">Versions</th>
                    <th>Changed</th>
                    <th>User</th>
                  </tr>
                </thead>
                <tbody>
                  {models.map((model) => (
                    <tr key={model.id}>
                      <td>
                        <Link to={`/models/${encodeURIComponent(model.name)}`}>{model.name}</Link>
                      </td>
                      <td className="wide">{model.description}</td>
                      <td className="num">{model.numVersions}</td>
                      <td>
                        <Time at={model.lastUpdatedTime} />
                      </td>
                      <td>{model.username}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            ) : (
              <Empty command="det model create NAME">No model yet. A model names checkpoints that shall stay.</Empty>
            )
          }
        </Loaded>
      </Card>
    </>
  );
}

export function ModelPage() {
  const { name = "" } = useParams();
  const found = useData<{ model: Model; modelVersions: Version[] }>(
    `models/${encodeURIComponent(name)}/versions?orderBy=ORDER_BY_DESC`,
    ["models"],
  );
  return (
    <Loaded found={found}>
      {({ model, modelVersions }) => (
        <>
          <h1>{model.name}</h1>
          <p>{model.description}</p>
          <Card title="Versions">
            {modelVersions.length ? (
              <table>
                <thead>
                  <tr>
                    <th className="num">Version</th>
                    <th>Name</th>
                    <th>Checkpoint</th>
                    <th>Trial</th>
                    <th>Registered</th>
                    <th>User</th>
                  </tr>
                </thead>
                <tbody>
                  {modelVersions.map((one) => (
                    <tr key={one.version}>
                      <td className="num">{one.version}</td>
                      <td>{one.name}</td>
                      <td>
                        <Copyable text={one.checkpoint.uuid} />
                      </td>
                      <td>
                        {one.checkpoint.training && (
                          <Link to={`/experiments/${one.checkpoint.training.experimentId}/trials/${one.checkpoint.training.trialId}/overview`}>
                            {one.checkpoint.training.trialId}
                          </Link>
                        )}
                      </td>
                      <td>
                        <Time at={one.creationTime} />
                      </td>
                      <td>{one.username}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            ) : (
              <Empty command={`det model register-version ${model.name} UUID`}>No version yet.</Empty>
            )}
          </Card>
        </>
      )}
    </Loaded>
  );
}
