import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { BrowserRouter, Navigate, Route, Routes } from "react-router";

import { ApiError } from "./api/client";
import { Layout } from "./parts/layout";
import { Cluster } from "./pages/cluster";
import { Dashboard } from "./pages/dashboard";
import { ExperimentPage } from "./pages/experiment";
import { Experiments } from "./pages/experiments";
import { Login } from "./pages/login";
import { ModelPage, Models } from "./pages/models";
import { Queue } from "./pages/queue";
import { Settings } from "./pages/settings";
import { TaskLogs, Tasks } from "./pages/tasks";
import { TrialAlone, TrialPage } from "./pages/trial";

const client = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 1000,
      retry: (count, error) => count < 3 && !(error instanceof ApiError && error.status < 500),
      refetchOnWindowFocus: true,
    },
  },
});

export const App = () => (
  <QueryClientProvider client={client}>
    <BrowserRouter basename="/det">
      <Routes>
        <Route path="/login" element={<Login />} />
        <Route element={<Layout />}>
          <Route path="/dashboard" element={<Dashboard />} />
          <Route path="/experiments" element={<Experiments />} />
          <Route path="/projects/:project/experiments" element={<Experiments />} />
          <Route path="/experiments/:id/trials/:trial/:tab?" element={<TrialPage />} />
          <Route path="/experiments/:id/:tab?" element={<ExperimentPage />} />
          <Route path="/experiments/:id/visualization/:view" element={<ExperimentPage />} />
          <Route path="/trials/:trial" element={<TrialAlone />} />
          <Route path="/models" element={<Models />} />
          <Route path="/models/:name" element={<ModelPage />} />
          <Route path="/jobs" element={<Queue />} />
          <Route path="/clusters" element={<Cluster />} />
          <Route path="/tasks" element={<Tasks />} />
          <Route path="/:kind/:id/logs" element={<TaskLogs />} />
          <Route path="/settings" element={<Settings />} />
          <Route path="*" element={<Navigate to="/dashboard" replace />} />
        </Route>
      </Routes>
    </BrowserRouter>
  </QueryClientProvider>
);
