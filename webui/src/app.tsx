import { QueryClientProvider } from "@tanstack/react-query";
import { type ComponentType, lazy, Suspense } from "react";
import { BrowserRouter, Navigate, Route, Routes } from "react-router";

import { fetchedPage } from "./api/fetched";
import { queryClient } from "./api/queries";
import { Banner } from "./parts/banner";
import { Layout } from "./shell/layout";

const page = <Name extends string>(load: () => Promise<Record<Name, ComponentType>>, name: Name) =>
  lazy(() => fetchedPage(load).then((module) => ({ default: module[name] })));

// Each page is loaded on demand, to keep the first load small.
const Audit = page(() => import("./pages/audit"), "Audit");
const Cluster = page(() => import("./pages/cluster"), "Cluster");
const Compare = page(() => import("./pages/compare"), "Compare");
const Dashboard = page(() => import("./pages/dashboard"), "Dashboard");
const ExperimentPage = page(() => import("./pages/experiment"), "ExperimentPage");
const Experiments = page(() => import("./pages/experiments"), "Experiments");
const Login = page(() => import("./pages/login"), "Login");
const Models = page(() => import("./pages/models"), "Models");
const ModelPage = page(() => import("./pages/models"), "ModelPage");
const NewExperiment = page(() => import("./pages/new"), "NewExperiment");
const Queue = page(() => import("./pages/queue"), "Queue");
const Settings = page(() => import("./pages/settings"), "Settings");
const Tasks = page(() => import("./pages/tasks"), "Tasks");
const TaskLogs = page(() => import("./pages/tasks"), "TaskLogs");
const TrialPage = page(() => import("./pages/trial"), "TrialPage");
const TrialAlone = page(() => import("./pages/trial"), "TrialAlone");

const Missing = page(() => import("./shell/missing"), "Missing");
const Gallery = page(() => import("./ui/gallery"), "Gallery");
const Workspaces = page(() => import("./pages/workspaces"), "Workspaces");
const WorkspacePage = page(() => import("./pages/workspaces"), "WorkspacePage");
const Events = page(() => import("./pages/events"), "Events");

const client = queryClient();

export const App = () => (
  <QueryClientProvider client={client}>
    {/* The address holds what the user types and chooses, so a field must show a change at once. */}
    <BrowserRouter basename="/det" useTransitions={false}>
      <Banner />
      <Routes>
        <Route
          path="/login"
          element={
            <Suspense>
              <Login />
            </Suspense>
          }
        />
        <Route element={<Layout />}>
          <Route path="/dashboard" element={<Dashboard />} />
          <Route path="/new" element={<NewExperiment />} />
          <Route path="/experiments/new" element={<NewExperiment />} />
          <Route path="/experiments" element={<Experiments />} />
          <Route path="/projects/:project/experiments" element={<Experiments />} />
          <Route path="/projects/:project" element={<Experiments />} />
          <Route path="/workspaces" element={<Workspaces />} />
          <Route path="/workspaces/:id" element={<WorkspacePage />} />
          <Route path="/system/events" element={<Events />} />
          <Route path="/system/audit" element={<Audit />} />
          <Route path="/resourcepool/:pool/:tab?" element={<Queue />} />
          <Route path="/admin" element={<Settings />} />
          <Route path="/experiments/:id/trials/:trial/:tab?" element={<TrialPage />} />
          <Route path="/experiments/:id/:tab?" element={<ExperimentPage />} />
          <Route path="/experiments/:id/visualization/:view" element={<ExperimentPage />} />
          <Route path="/experiments/compare" element={<Compare />} />
          <Route path="/trials/:trial" element={<TrialAlone />} />
          <Route path="/models" element={<Models />} />
          <Route path="/models/:name" element={<ModelPage />} />
          <Route path="/jobs" element={<Queue />} />
          <Route path="/clusters" element={<Cluster />} />
          <Route path="/tasks" element={<Tasks />} />
          <Route path="/:kind/:id/logs" element={<TaskLogs />} />
          <Route path="/settings/:part?" element={<Settings />} />
          <Route path="/" element={<Navigate to="/dashboard" replace />} />
          <Route path="/system/components" element={<Gallery />} />
          <Route path="*" element={<Missing />} />
        </Route>
      </Routes>
    </BrowserRouter>
  </QueryClientProvider>
);
