// Watchglass in JupyterLab and Notebook. An error of ours must never break the user's Lab, so every error is caught.

import { ILabShell, ILayoutRestorer, JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette, IThemeManager, MainAreaWidget, WidgetTracker } from '@jupyterlab/apputils';
import { ILauncher } from '@jupyterlab/launcher';
import { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { IStatusBar } from '@jupyterlab/statusbar';
import { LabIcon } from '@jupyterlab/ui-components';
import { kernelOf, Lines, Mode } from './lines';
import { Marks } from './marks';
import { Page, State } from './page';
import { entry, pageUrl } from './server';
import { Status } from './status';

const ID = 'watchglass-lab:plugin';
const OPEN = 'watchglass:open';
const DRAWING =
  '<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 20 20" fill="none" stroke-width="1.6"' +
  ' stroke-linejoin="round" stroke-linecap="round"><circle class="jp-icon3" cx="10" cy="10" r="7.75" stroke="#616161"/>' +
  '<path class="jp-icon3" d="M3.4 11.8h3l1.9-4.6 2.9 7 1.9-4.2h3.5" stroke="#616161"/></svg>';

/** Available parts of Lab; Notebook 7 has no sidebar, no status bar and no launcher. */
interface Host {
  app: JupyterFrontEnd;
  notebooks: INotebookTracker | null;
  labShell: ILabShell | null;
  restorer: ILayoutRestorer | null;
  palette: ICommandPalette | null;
  launcher: ILauncher | null;
  statusBar: IStatusBar | null;
  settings: ISettingRegistry | null;
  themes: IThemeManager | null;
}

/** Scrolls to a cell of an open notebook. */
function go({ app, notebooks }: Host, id: string): void {
  const panel = notebooks?.find(one => one.content.widgets.some(cell => cell.model.id === id));
  if (panel === undefined) {
    return;
  }
  app.shell.activateById(panel.id);
  const at = panel.content.widgets.findIndex(cell => cell.model.id === id);
  panel.content.activeCellIndex = at;
  void panel.content.scrollToItem(at, 'smart').catch(() => undefined);
}

function begin(host: Host): void {
  const { app, notebooks, labShell } = host;
  const icon = new LabIcon({ name: 'watchglass:icon', svgstr: DRAWING });
  const found = entry();
  const pages = new Set<Page>();
  const state = (): State => {
    const panel = notebooks?.currentWidget;
    const theme = host.themes?.theme;
    const isLight = typeof theme !== 'string' || host.themes?.isLight(theme) !== false;
    return { kernel: kernelOf(panel), path: panel?.sessionContext.path, theme: isLight ? 'light' : 'dark' };
  };
  const page = (compact: boolean): Page => {
    const made = new Page(compact, state, cell => go(host, cell));
    pages.add(made);
    made.disposed.connect(() => pages.delete(made));
    return made;
  };

  // Restored only by its name, without port and address.
  const tabs = new WidgetTracker<MainAreaWidget<Page>>({ namespace: 'watchglass' });
  const open = async (): Promise<void> => {
    if ((await found) === null) {
      return;
    }
    if (labShell === null) {
      window.open(pageUrl(), 'watchglass', 'noopener');
      return;
    }
    const there = tabs.find(() => true);
    const tab = there ?? new MainAreaWidget({ content: page(false) });
    if (there === undefined) {
      tab.id = 'watchglass';
      tab.title.label = 'Watchglass';
      tab.title.icon = icon;
      tab.title.closable = true;
      labShell.add(tab, 'main');
      void tabs.add(tab);
    }
    labShell.activateById(tab.id);
  };
  let isThere = false;
  app.commands.addCommand(OPEN, {
    label: args => (args.isPalette === true ? 'Watchglass: open' : 'Watchglass'),
    caption: 'What this machine and its kernels use, live',
    icon,
    isVisible: () => isThere,
    execute: open
  });
  void host.restorer?.restore(tabs, { command: OPEN, name: () => 'watchglass' });

  void found
    .then(known => {
      if (known === null) {
        return;
      }
      isThere = true;
      app.commands.notifyCommandChanged(OPEN);
      host.palette?.addItem({ command: OPEN, category: 'Watchglass', args: { isPalette: true } });
      if (!known.hasCard) {
        host.launcher?.add({ command: OPEN, category: 'Notebook', rank: 90 });
      }
      if (labShell !== null) {
        const side = page(true);
        side.id = 'watchglass-side';
        side.title.icon = icon;
        side.title.caption = 'Watchglass';
        labShell.add(side, 'right', { rank: 900 });
      }
      beside(host, () => pages.forEach(one => one.tell()), open);
    })
    .catch(error => console.warn('watchglass:', error));
}

/** Parts that follow the notebooks: the status bar, the lines, and the messages to the pages. */
function beside(host: Host, tell: () => void, open: () => Promise<void>): void {
  const { notebooks } = host;
  host.themes?.themeChanged.connect(tell);
  if (notebooks === null) {
    return;
  }
  const status = host.statusBar === null ? null : new Status(() => kernelOf(notebooks.currentWidget), () => void open());
  if (status !== null) {
    host.statusBar?.registerStatusItem(ID, {
      item: status,
      align: 'left',
      rank: 90,
      isActive: () => status.isActive,
      activeStateChanged: status.changed
    });
  }
  const changed = (): void => {
    tell();
    status?.look();
  };
  const watch = (panel: NotebookPanel): void => {
    panel.sessionContext.kernelChanged.connect(changed);
    panel.sessionContext.propertyChanged.connect(tell);
  };
  notebooks.currentChanged.connect(changed);
  notebooks.widgetAdded.connect((_, panel) => watch(panel));
  notebooks.forEach(watch);

  const lines = new Lines(notebooks);
  new Marks(notebooks, kernels => lines.stored(kernels));
  void host.settings
    ?.load(ID)
    .then(settings => {
      const read = (): void => lines.set(settings.get('cellLines').composite as Mode);
      settings.changed.connect(read);
      read();
    })
    .catch(() => undefined);
}

const plugin: JupyterFrontEndPlugin<void> = {
  id: ID,
  description: 'Watchglass as a tab and in the sidebar, the memory of the kernel, a line under each cell.',
  autoStart: true,
  optional: [
    INotebookTracker,
    ILabShell,
    ILayoutRestorer,
    ICommandPalette,
    ILauncher,
    IStatusBar,
    ISettingRegistry,
    IThemeManager
  ],
  activate: (
    app: JupyterFrontEnd,
    notebooks: INotebookTracker | null,
    labShell: ILabShell | null,
    restorer: ILayoutRestorer | null,
    palette: ICommandPalette | null,
    launcher: ILauncher | null,
    statusBar: IStatusBar | null,
    settings: ISettingRegistry | null,
    themes: IThemeManager | null
  ) => {
    try {
      begin({ app, notebooks, labShell, restorer, palette, launcher, statusBar, settings, themes });
    } catch (error) {
      console.warn('watchglass:', error);
    }
  }
};

export default plugin;
