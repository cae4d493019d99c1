// unitmath 0.8 ships no type declarations for this version; this is the part that units.ts uses. The UMD bundle is imported
// because the package's main file loads the source through the `esm` loader, which doubles the start time of the CLI.
declare module "unitmath/dist/UnitMath.js" {
  interface Unit {
    readonly value: number;
    to(unit: string): Unit;
  }
  interface UnitDefinition {
    quantity?: string;
    value: number | string;
    prefixes?: string;
    aliases?: string[];
  }
  interface UnitFactory {
    (value: number, unit: string): Unit;
    config(options: {
      definitions: {
        skipBuiltIns: boolean;
        baseQuantities: string[];
        prefixes: Record<string, Record<string, number>>;
        units: Record<string, UnitDefinition>;
        unitSystems: Record<string, Record<string, string>>;
      };
    }): UnitFactory;
  }
  const unitmath: UnitFactory;

  export = unitmath;
}
